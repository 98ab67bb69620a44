package main

func Example() {
	main()
	// Output:
	// 1000000 numbers, 7 MiB off-heap
}
