//go:build !race

package intern_test

const raceBuild = false
