// Payer: who is charged for a heap's memory.
//
// The heap charges what it is about to commit and refunds what it has given back, in whole
// pages and slabs: the fast paths know nothing of it.

package pages

// A Payer is charged for the memory that a heap commits, and limits it. Several heaps may
// have parts of one limit. It is safe for concurrent use.
//
// Charge, MayCharge, Refund and Limit are called with locks of the heap held: they call no
// method of a heap.
type Payer interface {
	// Charge counts that many bytes more, or refuses them and counts nothing. Its error
	// matches ErrOutOfMemory.
	Charge(bytes int) error

	// MayCharge returns what Charge would return now. If it would leave less than slack bytes,
	// and they were not set aside for the heap, it returns what Charge of as much more would.
	MayCharge(bytes, slack int) error

	// Refund takes back charges.
	Refund(bytes int)

	// Limit returns the bytes that the heap may have at most; 0 if there is no limit.
	Limit() int

	// MakeRoom is called when Charge has refused a request of about that many bytes, and
	// the heap itself has nothing to give back. It reports whether another try may help.
	MakeRoom(bytes int) bool
}
