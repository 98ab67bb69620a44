//go:build !freehold_debug

package heap

// debugging is false in normal builds, so that what debug_on.go does is not there.
const debugging = false

func poison(_, _ uintptr)                              {}
func (h *Heap) mustBeUntouched(uintptr, uint8, uint16) {}
func (h *Heap) mustEndUntouched([]byte)                {}
func (c *central) check(*Heap)                         {}
func (p *pageHeap) check(*region, *span)               {}
