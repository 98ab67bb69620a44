// Package epoch tells when the readers of unlinked memory have left: epoch-based
// reclamation.
//
// Readers that take no lock may still use a block that a writer has just removed
// from a shared structure. The block must not be reused before they are done. A
// reader holds a [Guard] while it reads; a writer unlinks, ends the epoch of its
// [Domain], and reuses the block once that [Epoch] has passed:
//
//	var d epoch.Domain
//
//	g := d.Enter()        // a reader
//	v := current.Load()
//	...
//	g.Leave()
//
//	old := current.Swap(v) // a writer
//	e := d.Advance()
//	...
//	if e.Passed() {        // later: all readers of old have left
//		freehold.Free(heap, old)
//	}
//
// Nobody waits: readers take no lock, and a writer asks again later.
//
// [github.com/freehold-go/freehold/arena.Shared] and the pools of
// [github.com/freehold-go/freehold/pool] do the writer's part themselves, by
// Reset and Retire. Each has a Domain of its own unless its options name one
// that it shares with others. A reader of several containers with one Domain
// needs one guard.
package epoch
