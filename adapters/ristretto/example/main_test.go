package main

import "os"

func Example() {
	os.Args = []string{"example", "b", "a", "c"}
	main()
	// Output:
	// a
	// b
	// c
	// 1048576 bytes are allocated.
	// NO leaks found.
}
