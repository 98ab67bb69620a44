// Lockrank: the order in which locks are taken.
//
//	Running | Budget | Settings | Registry | Scavenging | ... | Ledger | Leaf
//	outermost --------------------------------------------------> innermost
//
// A goroutine that holds a lock takes only those of ranks further down, so no circle of goroutines waits for each
// other. Builds with the tag freehold_ranks assert that, as the runtime's lockrank does: see on.go.

// Package lockrank has the ranks of the engine's and the budget's locks.
package lockrank

// The ranks, outermost first.
type (
	Running    struct{} // the process's budget begins or ends
	Relief     struct{} // of a budget: what it does before it refuses a request
	Budget     struct{} // of a budget
	Settings   struct{} // of package watch; held while the caches of all heaps are drained
	Registry   struct{} // the open heaps; held while EachOpen calls its function
	Scavenging struct{} // of a heap's pages: who gives memory back
	Counting   struct{} // of a heap: blocks are where Stats does not look
	Guards     struct{} // of a heap's guarded blocks
	Stock      struct{} // of a class of a heap; those of all groups of processors may be held at once
	Central    struct{} // of a class of a heap
	Caches     struct{} // of a pin.Table: entries come and go
	Pages      struct{} // of a heap
	Records    struct{} // of package watch; they have Pages of their own, which come after
	Space      struct{} // the addresses of all heaps, or of all metadata
	Ledger     struct{} // of a tree of accounts
	Leaf       struct{} // all others: no other lock is taken under them
)
