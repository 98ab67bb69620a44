//go:build race

package intern_test

const raceBuild = true // blocks are on the Go heap
