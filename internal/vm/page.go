//go:build !wasm

package vm

import "os"

func systemPageBytes() uintptr { return uintptr(os.Getpagesize()) }
