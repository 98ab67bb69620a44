//go:build cgo

package guides

func Example_mallocBefore() {
	mallocBefore()
	// Output:
	// 2
	// 1
	// 0
}
