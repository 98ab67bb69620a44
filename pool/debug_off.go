//go:build !freehold_debug && !asan

package pool

// debugging is false in normal builds, which have nothing of debug_on.go
// and debug_asan.go.
const debugging = false

func (b *Blocks) poison(uintptr)                   {}
func (b *Blocks) poisonAll(*chunk)                 {}
func (b *Blocks) claim(uintptr)                    {}
func (b *Blocks) claimAll([]entry)                 {}
func (b *Blocks) mustEndUntouched(string, uintptr) {}
func (b *Blocks) overrun(uintptr) int              { return 0 }
