//go:build !freehold_debug

package pool

// debugging is false in normal builds, which have nothing of debug_on.go.
const debugging = false

func (b *Blocks) poison(uintptr)                   {}
func (b *Blocks) poisonAll(*chunk)                 {}
func (b *Blocks) mustBePoison(uintptr)             {}
func (b *Blocks) allMustBePoison([]entry)          {}
func (b *Blocks) mustEndUntouched(string, uintptr) {}
func (b *Blocks) overrun(uintptr) int              { return 0 }
