package freehold

// For the tests in package freehold_test.
var (
	FaultOf    = faultOf
	GrownBytes = grownBytes
)

// Register adds a heap to the registry, as NewHeap does.
func Register(h *Heap) { register(h) }

// Registered reports whether AllStats looks at h.
func Registered(h *Heap) bool {
	registry.mu.Lock()
	defer registry.mu.Unlock()
	_, ok := registry.open[h]
	return ok
}

// OnPeak makes each Counter call f before its peak rises, until restore is called.
func OnPeak(f func()) (restore func()) {
	onPeak = f
	return func() { onPeak = nil }
}
