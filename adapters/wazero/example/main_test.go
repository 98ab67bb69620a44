package main

import (
	"os"
	"path/filepath"
)

func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	// A module with a memory of one page, and no function.
	os.Args = []string{"example", filepath.Join(dir, "program.wasm")}
	if err := os.WriteFile(os.Args[1], []byte("\x00asm\x01\x00\x00\x00\x05\x03\x01\x00\x01"), 0o600); err != nil {
		panic(err)
	}
	main()
	// Output:
	// 64 KiB off-heap
}
