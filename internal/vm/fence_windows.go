package vm

var flushProcessWriteBuffers = kernel32.NewProc("FlushProcessWriteBuffers")

func prepareFence(_, _ uintptr) error { return flushProcessWriteBuffers.Find() }

func fence(_, _ uintptr) error {
	_, _, _ = flushProcessWriteBuffers.Call() // returns nothing
	return nil
}
