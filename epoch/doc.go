// Package epoch provides epoch-based reclamation: it tells when no reader can use unlinked memory
// any more.
//
// Lock-free readers may still use a block that a writer has just removed from a shared structure,
// so the writer must not reuse it yet. A reader holds a [Guard] while it reads. A writer unlinks
// the block, ends the epoch of its [Domain], and reuses the block once that [Epoch] has passed:
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
// Readers take no lock and never wait. A writer polls. One with many values keeps them in batches,
// each with the Epoch that ended after they were unlinked: a list of such batches is a retire list.
//
// [github.com/freehold-go/freehold/arena.Shared] and the pools of
// [github.com/freehold-go/freehold/pool] do the writer's part themselves, by Reset and Retire. Each
// has its own Domain unless its options name one to share. For several containers with one Domain,
// a reader needs one guard.
package epoch
