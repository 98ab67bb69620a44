package main

func Example() {
	main()
	// Output:
	// 1 MiB off-heap
}
