// Lockrank: the order in which locks must be taken.
//
//	Running | Budget | Settings | Registry | Scavenging | ... | Ledger | Leaf
//	outermost --------------------------------------------------> innermost
//
// A goroutine that holds a lock may take only locks of later ranks, so there is no deadlock.
// Builds with the tag freehold_ranks assert the order, as the runtime's lockrank does: see on.go.

// Package lockrank ranks the locks of the engine and the budget.
package lockrank

// The ranks, outermost first.
type (
	Running    struct{} // held while the process's budget begins or ends
	Relief     struct{} // of a budget; held while it reclaims memory before it refuses a request
	Budget     struct{} // of a budget
	Settings   struct{} // of package watch; held while the caches of all heaps are drained
	Registry   struct{} // the open heaps; held while EachOpen calls its function
	Scavenging struct{} // of a heap's pages; held while one goroutine returns memory to the system
	Counting   struct{} // of a heap; held while blocks are where Stats does not look
	Guards     struct{} // of a heap's guarded blocks
	Homes      struct{} // of a heap; held while the Depots of all homes are, and while a home is added
	Depot      struct{} // of a class and a home
	Central    struct{} // of a size class
	Caches     struct{} // of a pin.Table; held while entries are added and removed
	Pages      struct{} // of a heap
	Records    struct{} // of package watch; the Pages of its own memory come after
	Space      struct{} // the addresses of all heaps, or of all metadata
	Ledger     struct{} // of a tree of limits
	Leaf       struct{} // all others; a goroutine that holds one takes no other lock
)
