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
// IDs are dense, 0, 1, 2 and so on, in the order of the first Intern. So they can index arrays: the
// dictionary of a column, the symbols of a program, the labels of a time series. An ID takes 4
// bytes and has no pointer. Two IDs of one set are equal if and only if their strings are; their
// order means nothing.
//
// [Strings] serves one goroutine, [Shared] any. With [Options].RefCounts a string is freed when its
// last reference is released; otherwise strings stay until Close.
//
// The garbage collector does not see the strings. Each set hashes with a random seed, so an
// attacker cannot choose strings that collide.
package intern
