//go:build !race

package intern

const raceBuild = false
