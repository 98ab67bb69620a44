package freehold

import (
	"testing"

	"github.com/freehold-go/freehold/internal/asan"
	"github.com/freehold-go/freehold/internal/mode"
)

// NeedsPlainBlocks skips a test if blocks have red zones and wait in quarantine.
func NeedsPlainBlocks(t *testing.T) {
	t.Helper()
	if _, on := mode.Quarantine(); on || asan.Enabled {
		t.Skip("checked blocks have red zones, and freed ones wait in quarantine")
	}
}

// For the tests in package freehold_test.
var (
	FaultOf    = faultOf
	GrownBytes = grownBytes
)

// OnPeak makes each Tagged call f before its peak rises, until restore is called.
func OnPeak(f func()) (restore func()) {
	onPeak = f
	return func() { onPeak = nil }
}

// CheckReferences has references checked as in the debug modes, until restore is called.
func CheckReferences() (restore func()) {
	before := checksReferences
	checksReferences = true
	return func() { checksReferences = before }
}

// PoisonedAddr is 0 where poison is not told from addresses.
const PoisonedAddr = poisonedAddr
