// Payer: the account that is charged for a heap's memory.
//
// The heap charges before it commits and refunds after it gives back, in whole pages and slabs.
// The fast paths never call it.

package pages

// A Payer is charged for the memory that a heap commits, and limits it. Several heaps may share
// one limit. It is safe for concurrent use.
//
// The heap calls Charge, MayCharge, Refund and Limit under its locks, so they must not call a
// method of any heap.
type Payer interface {
	// Charge adds bytes to the charges, or refuses and changes nothing. Its error matches
	// ErrOutOfMemory.
	Charge(bytes int) error

	// MayCharge returns the error that Charge would return now. It also fails if the charge
	// would leave less than slack bytes, unless the bytes were reserved for the heap.
	MayCharge(bytes, slack int) error

	// Refund subtracts bytes from the charges.
	Refund(bytes int)

	// Limit returns the most bytes that the heap may have, or 0 if there is no limit.
	Limit() int

	// MakeRoom is called after Charge has refused a request of about that size and the heap
	// itself has nothing to give back. It reports whether another try may succeed.
	MakeRoom(bytes int) bool
}
