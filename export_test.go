package freehold

// For the tests in package freehold_test.
var (
	FaultOf    = faultOf
	GrownBytes = grownBytes
)

// OnPeak makes each Counter call f before its peak rises, until restore is called.
func OnPeak(f func()) (restore func()) {
	onPeak = f
	return func() { onPeak = nil }
}
