//go:build race

package misuse

const race = true
