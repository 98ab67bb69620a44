//go:build !freehold_debug

package pool

// debugging is false in normal builds, which have nothing of debug_on.go.
const debugging = false

func (b *Blocks) poison(uintptr)          {}
func (b *Blocks) poisonAll(*chunk)        {}
func (b *Blocks) mustBePoison(uintptr)    {}
func (b *Blocks) allMustBePoison([]entry) {}
