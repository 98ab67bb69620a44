//go:build !freehold_debug

package heap

// debugging is a constant, so the compiler drops the code of debug builds.
const debugging = false

func poison(_, _ uintptr)                                {}
func (h *Heap) mustBeUntouched(uintptr, uint8, uint16)   {}
func (h *Heap) mustEndUntouched([]byte)                  {}
func poisonEnd([]byte)                                   {}
func poisonDirty(*span)                                  {}
func (c *central) check(*Heap)                           {}
func (p *pageHeap) check(*region, *span)                 {}
func (p *pageHeap) mustBeUnused(_ *region, _, _ uintptr) {}
