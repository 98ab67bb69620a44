// Command example has C's malloc on a heap with a limit: its go.mod replaces modernc.org/memory.
// To run it, in this folder of a clone, whose go.mod it completes:
//
//	GOWORK=off go mod tidy && GOWORK=off go run .
package main

import (
	"fmt"

	_ "example.com/user/limits"
	"github.com/freehold-go/freehold"
	"modernc.org/libc"
)

func main() {
	tls := libc.NewTLS()
	defer tls.Close()
	p := libc.Xmalloc(tls, 8<<20)
	for _, st := range freehold.AllStats() {
		if st.LiveBytes >= 8<<20 {
			fmt.Println(st.Name)
		}
	}
	fmt.Println(libc.Xmalloc_usable_size(tls, p), libc.Xmalloc(tls, 32<<20))
	libc.Xfree(tls, p)
}
