package useafterfree

import "github.com/freehold-go/freehold"

func realloc(a freehold.Allocator) error {
	b, err := a.Alloc(100, 8)
	if err != nil {
		return err
	}
	c, err := freehold.Realloc(a, b, 3000, 8)
	if err != nil {
		a.Free(b)
		return err
	}
	b[0] = 1 // want `b is written after freehold.Realloc`
	a.Free(c)
	return nil
}

func reallocMust(a freehold.Allocator) {
	b := freehold.Must(a.Alloc(100, 8))
	c := freehold.Must(freehold.Realloc(a, b, 3000, 8))
	a.Free(b) // want `b is freed after freehold.Must at line 22, which replaced it`
	a.Free(c)
}

func reallocZeroed(a freehold.Allocator) {
	b := freehold.Must(a.Alloc(100, 8))
	c := freehold.Must(freehold.ReallocZeroed(a, b, 3000, 8))
	a.Free(b) // want `b is freed after freehold.Must at line 29, which replaced it`
	a.Free(c)
}

func resize(h *freehold.Heap, b []byte) []byte {
	if r, ok := h.Resize(b, 90); ok {
		b[0] = 1 // want `b is written after h.Resize`
		return r
	}
	b[0] = 1
	return b
}

func rightResize(h *freehold.Heap, b []byte) {
	if r, ok := h.Resize(b, 90); ok {
		b = r
	}
	b[0] = 1
	h.Free(b)
}

func stale(a freehold.Allocator) {
	xs := freehold.Must(freehold.MakeSlice[int](a, 4))
	p := &xs[0]
	xs = freehold.Must(freehold.Append(a, xs, 1))
	*p = 1 // want `xs is written after freehold.Must`
	freehold.FreeSlice(a, xs)
}

func roomLeft(a freehold.Allocator) {
	xs := freehold.Must(freehold.MakeSlice[int](a, 8))[:4]
	p := &xs[0]
	xs = freehold.Must(freehold.Append(a, xs, 1))
	*p = 1
	freehold.FreeSlice(a, xs)
}

func deferredOld(a freehold.Allocator) error {
	xs, err := freehold.MakeSlice[int](a, 4)
	if err != nil {
		return err
	}
	defer freehold.FreeSlice(a, xs)
	xs, err = freehold.Append(a, xs, 1) // want `xs is replaced here, and freed again by the deferred freehold.FreeSlice`
	if err != nil {
		return err
	}
	xs[0] = 1
	return nil
}

func deferredNew(a freehold.Allocator) error {
	xs, err := freehold.MakeSlice[int](a, 4)
	if err != nil {
		return err
	}
	defer func() { freehold.FreeSlice(a, xs) }()
	xs, err = freehold.Append(a, xs, 1)
	if err != nil {
		return err
	}
	xs[0] = 1
	return nil
}
