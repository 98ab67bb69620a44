//go:build !freehold_debug

package arena

// debug is false in normal builds, so that what debug_on.go does is not there.
const debug = false

func poison([]byte)                        {}
func mustBePoison([]byte)                  {}
func (a *Arena) poisonSince(*Mark)         {}
func (a *Arena) mustBePoison(_, _ uintptr) {}
