//go:build asan

package watch

import "github.com/freehold-go/freehold/internal/asan"

// Memory that is not the user's is poisoned. The sanitizer reports each access at once, so
// nothing is filled and nothing verified. Free memory of the engine's stays poisoned: it does
// not touch that but to clear it, by a call that the sanitizer does not see.

func permit(b []byte)    { asan.Unpoison(b) }
func forbid(b []byte)    { asan.Poison(b) }
func forsake(b []byte)   { asan.Poison(b) }
func written([]byte) int { return -1 }
