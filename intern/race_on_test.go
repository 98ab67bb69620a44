//go:build race

package intern

const raceBuild = true // blocks are on the Go heap
