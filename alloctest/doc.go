// Package alloctest tests allocators, and code that uses them.
//
//   - [TestAllocator] checks that an allocator fulfils the contract of
//     [freehold.Allocator]. Run it on each allocator that you write.
//   - [RunProgram] interprets bytes as a program of calls and checks every result. It is
//     the body of a fuzz target.
//   - [New] returns an allocator for tests of other code. Leaks, double frees,
//     overruns and late writes fail the test, with stacks.
//   - [FailAfter] and [FailOnce] return an allocator that runs out of memory at a
//     chosen call, so that a loop can take every error path.
//
// Together, the last two test every error path of an operation:
//
//	for n := 0; ; n++ {
//		a := alloctest.FailAfter(alloctest.New(t), n)
//		err := operation(a) // on an error, it must free all that it allocated
//		if err == nil {
//			break
//		}
//		if !errors.Is(err, freehold.ErrOutOfMemory) {
//			t.Errorf("allocation %d failed: %v", n+1, err)
//		}
//	}
package alloctest
