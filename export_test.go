package freehold

// For the tests in package freehold_test.
var (
	FaultOf    = faultOf
	GrownBytes = grownBytes
)
