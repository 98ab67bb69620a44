// Fences: asymmetric memory barriers (membarrier). One thread makes all threads of the process
// execute a full barrier, so the others need none of their own.

package vm

// PrepareFence enables Fence, or returns an error if the system has none. The first call of a
// process may take 20 ms, later ones about a microsecond.
func PrepareFence() error { return do(OpFence, 0, 0, prepareFence) }

// Fence returns once every thread of the process has executed a full memory barrier since the
// call. A load or store of another thread is then either before its barrier, and visible to the
// caller, or after it, and sees the caller's stores from before the call. Fence takes about a
// microsecond. PrepareFence must have succeeded. After an error any barrier may be missing.
func Fence() error { return do(OpFence, 0, 0, fence) }
