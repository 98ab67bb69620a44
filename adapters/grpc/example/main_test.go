package main

func Example() {
	main()
	// Output:
	// SERVING true
}
