// Package pintest has the tests that packages with a pin.Table share: see leaves.go, and, of
// assembly, slots_amd64.go.
package pintest
