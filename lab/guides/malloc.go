//go:build cgo

package guides

/*
#include <stdlib.h>
*/
import "C"

import (
	"fmt"
	"unsafe"
)

type node struct {
	key  uint64
	next *node // into C's memory
}

func mallocBefore() {
	var first *node
	for key := range uint64(3) {
		n := (*node)(C.malloc(C.size_t(unsafe.Sizeof(node{})))) // not zeroed; never nil
		*n = node{key, first}
		first = n
	}
	for n := first; n != nil; {
		fmt.Println(n.key)
		next := n.next
		C.free(unsafe.Pointer(n))
		n = next
	}
}
