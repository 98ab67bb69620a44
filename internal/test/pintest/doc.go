// Package pintest has the tests that packages with a pin.Table share: leaves.go, and
// slots_amd64.go for assembly.
package pintest
