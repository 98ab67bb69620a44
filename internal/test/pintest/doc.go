// Package pintest has a test that packages with a pin.Table and assembly share: see
// slots_amd64.go.
package pintest
