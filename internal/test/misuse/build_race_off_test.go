//go:build !race

package misuse

const race = false
