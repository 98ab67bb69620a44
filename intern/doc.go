// Package intern keeps each distinct string once, off-heap, and gives it a number.
//
//	labels := intern.New(heap, nil)
//	defer labels.Close()
//
//	id, err := labels.Intern(name)  // the same ID for equal strings
//	...
//	name := labels.Value(id)        // an ordinary string, off-heap, until Close
//	id, ok := labels.Lookup(name)   // without adding it
//
// IDs are dense, 0, 1, 2 and so on, in the order of the first Intern. So they index
// arrays: the dictionary of a column, the symbols of a program, the labels of a time
// series. An ID takes 4 bytes, has no pointer, and comparing two IDs compares their
// strings for equality, not for order.
//
// [Strings] serves one goroutine, [Shared] any. With [Options].RefCounts a string is
// freed when its last reference is released; otherwise strings stay until Close.
//
// The garbage collector sees nothing of the strings, however many there are. The hash has
// a random seed in each set, so nobody who does not know it can choose strings that
// collide.
package intern
