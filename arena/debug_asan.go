// Builds with -asan: the sanitizer reports each access to memory without a block.

//go:build asan && !freehold_debug

package arena

import "github.com/freehold-go/freehold/internal/asan"

const debug = true

// poison makes b inaccessible.
func poison(b []byte) { asan.Poison(b) }

// claim makes [from, to) of the current chunk accessible, which is about to be of a block.
func (a *Arena) claim(from, to uintptr) { claim(a.bytes(from, to)) }

// claim makes b accessible.
func claim(b []byte) { asan.Unpoison(b) }
