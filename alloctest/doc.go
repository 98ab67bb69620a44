// Package alloctest tests allocators, and code that uses them.
//
//   - [TestAllocator] holds an allocator to the contract of
//     [freehold.Allocator]: run it on each one that you write.
//   - [Run] interprets bytes as a program of calls and checks every answer; it
//     is the body of a fuzz target.
//   - [New] returns an allocator for tests of other code: leaks, double frees,
//     overruns and late writes fail the test, with stacks.
//   - [FailAfter] and [FailOnce] return an allocator that runs out at a chosen
//     call, so that a loop takes every error path.
//
// Together, the last two test every error path of an operation:
//
//	for n := 0; ; n++ {
//		a := alloctest.FailAfter(alloctest.New(t), n)
//		err := operation(a) // must free all it took when it fails
//		if err == nil {
//			break
//		}
//		if !errors.Is(err, freehold.ErrOutOfMemory) {
//			t.Errorf("allocation %d failed: %v", n+1, err)
//		}
//	}
package alloctest
