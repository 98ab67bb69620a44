// Fences: one thread has all threads of the process execute a full barrier, so that the
// others need none of their own.

package vm

// PrepareFence makes Fence work from its return on, or says why it cannot. The first call of a
// process may take 20 ms, later ones about a microsecond.
func PrepareFence() error { return do(OpFence, 0, 0, prepareFence) }

// Fence returns when each thread of the process has executed a full memory barrier since the
// call: each load and store of theirs is then either before that barrier, and visible to the
// caller, or after, and sees what the caller stored before the call. It takes about a
// microsecond. PrepareFence must have succeeded; in an error nothing is known of the barriers.
func Fence() error { return do(OpFence, 0, 0, fence) }
