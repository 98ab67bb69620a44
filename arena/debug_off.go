//go:build !freehold_debug

package arena

// debug is false in normal builds: the compiler drops the checks of debug_on.go.
const debug = false

func poison([]byte)                        {}
func mustBePoison([]byte)                  {}
func (a *Arena) poisonSince(*Mark)         {}
func (a *Arena) mustBePoison(_, _ uintptr) {}
