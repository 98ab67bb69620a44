package heap

// Exported for the tests that need alloctest, which imports this package.

// Adapter is a Heap with the methods of freehold.Allocator.
type Adapter struct{ *Heap }

func (a Adapter) Alloc(size, align int) ([]byte, error)  { return a.Heap.Alloc(size, align, false) }
func (a Adapter) Zeroed(size, align int) ([]byte, error) { return a.Heap.Alloc(size, align, true) }

var NewHeap = newHeap

var (
	Check  = (*Heap).check
	Fill   = fill
	AllSet = allSet
)

// Tick is what the timer does.
func (h *Heap) Tick() { h.tick() }

// PlainAdapter allocates and frees without assembly.
type PlainAdapter struct{ Adapter }

func (a PlainAdapter) Alloc(size, align int) ([]byte, error)  { return a.Heap.alloc(size, align, false) }
func (a PlainAdapter) Zeroed(size, align int) ([]byte, error) { return a.Heap.alloc(size, align, true) }
func (a PlainAdapter) Free(b []byte)                          { a.Heap.free(b) }
