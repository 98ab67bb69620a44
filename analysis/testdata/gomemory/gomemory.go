package gomemory

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"github.com/freehold-go/freehold"
)

type node struct {
	name, title freehold.String
	next        freehold.Ptr[node]
	values      freehold.Slice[int]
	id          int
}

var (
	root  node
	table [10]int
	names = []string{"a"}
)

func pointers(n *node) {
	var local node
	n.next = freehold.PtrTo(&local)       // want `freehold.PtrTo of &local, which is a Go variable`
	n.next = freehold.PtrTo(new(node))    // want `which is a Go variable`
	n.next = freehold.PtrTo(&node{id: 1}) // want `which is a Go variable`
	n.next = freehold.PtrTo(&root)        // want `which is a Go variable`
	made := &node{}
	n.next = freehold.PtrTo(made)                           // want `freehold.PtrTo of made, which is a Go variable`
	_ = freehold.PtrTo(&table[1])                           // want `which is a Go variable`
	_ = freehold.PtrTo(&local.id)                           // want `which is a Go variable`
	_ = freehold.PtrTo((*int32)(unsafe.Pointer(&local.id))) // want `which is a Go variable`
	_ = freehold.PtrTo(&make([]int, 3)[1])                  // want `which is memory of the Go heap`
}

func slicesOf(n *node, count int, in []int) {
	made := make([]int, count)
	n.values = freehold.SliceOf(made)                       // want `freehold.SliceOf of made, which is memory of the Go heap`
	n.values = freehold.SliceOf(made[1:2])                  // want `freehold.SliceOf of made\[1:2\], which is memory of the Go heap`
	n.values = freehold.SliceOf([]int{1, 2})                // want `which is memory of the Go heap`
	n.values = freehold.SliceOf(table[:])                   // want `which is a Go variable`
	n.values = freehold.SliceOf(append([]int(nil), in...))  // want `which is memory of the Go heap`
	n.values = freehold.SliceOf(append(made, 1))            // want `which is memory of the Go heap`
	n.values = freehold.SliceOf(slices.Clone(in))           // want `which is memory of the Go heap`
	_ = freehold.SliceOf([]byte("text"))                    // want `which is a copy in the Go heap`
	_ = freehold.SliceOf(slices.Collect(slices.Values(in))) // want `which is memory of the Go heap`
	var buf [64]byte
	_ = freehold.SliceOf(buf[:count]) // want `which is memory of the Go heap`
	if count > 2 {
		made = []int{1}
	}
	n.values = freehold.SliceOf(made) // want `which is memory of the Go heap`
}

func stringsOf(n *node, body []byte, s string, r io.Reader, v any, count int) {
	n.name = freehold.StringOf("text")                        // want `freehold.StringOf of "text", which is a constant`
	n.name = freehold.StringOf(s + "!")                       // want `which is a string of the Go heap`
	n.name = freehold.StringOf(string(body[:5]))              // want `which is a copy in the Go heap`
	n.name = freehold.StringOf([]byte(s))                     // want `which is a copy in the Go heap`
	n.name = freehold.StringOf(fmt.Sprintf("%d", count))      // want `which is memory of the Go heap`
	n.name = freehold.StringOf(strconv.Itoa(count))           // want `which is memory of the Go heap`
	n.name = freehold.StringOf(strconv.FormatInt(1, 10)[1:])  // want `which is memory of the Go heap`
	n.name = freehold.StringOf(strings.Clone(s))              // want `which is memory of the Go heap`
	n.name = freehold.StringOf(bytes.Clone(body))             // want `which is memory of the Go heap`
	n.name = freehold.StringOf(freehold.Must(os.ReadFile(s))) // want `which is memory of the Go heap`
	all, err := io.ReadAll(r)
	n.name = freehold.StringOf(all[:5]) // want `freehold.StringOf of all\[:5\], which is memory of the Go heap`
	text, err := json.Marshal(err)
	n.name = freehold.StringOf(text) // want `which is memory of the Go heap`
	name := "few"
	if count > 9 {
		name = "many"
	}
	n.name = freehold.StringOf(name) // want `which is a constant`
}

// Off-heap memory, values that may be off-heap, and empty ones.
func offHeap(h *freehold.Heap, n *node, body []byte, s string, count int) {
	n.next = freehold.PtrTo(n)
	n.next = freehold.PtrTo(freehold.Must(freehold.New[node](h)))
	n.next = freehold.PtrTo[node](nil)
	_ = freehold.PtrTo(&n.id)
	n.values = freehold.SliceOf(freehold.Must(freehold.MakeSlice[int](h, count)))
	n.values = freehold.SliceOf[int](nil)
	n.values = freehold.SliceOf([]int{})
	n.values = freehold.SliceOf(make([]int, 0))
	n.values = freehold.SliceOf(freehold.Must(freehold.Clone(h, []int{1})))
	n.name = freehold.StringOf(freehold.Must(freehold.CloneString(h, "text"))[1:])
	n.name = freehold.StringOf(freehold.Must(h.Alloc(count, 1)))
	n.name = freehold.StringOf(unsafe.String(unsafe.SliceData(body), 3))
	n.name = freehold.StringOf(body[:5])
	n.name = freehold.StringOf(names[0])
	n.name = freehold.StringOf(strings.TrimSpace(s))
	n.name = freehold.StringOf("")
	n.title = n.name
	title := s
	if count > 9 {
		title = "many"
	}
	n.title = freehold.StringOf(title)
	xs := n.values.Get()
	xs = append(xs[:1], 2)
	n.values = freehold.SliceOf(xs)
}
