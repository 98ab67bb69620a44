// Command mistakes makes one mistake with off-heap memory. docs/debugging.md shows each tool's
// report of it:
//
//	FREEHOLD_DEBUG=leak go run ./examples/debugging/mistakes leak
//
// The mistakes are leak, useafterfree, overflow, race and gopointer. A number behind the
// mistake repeats it.
package main

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/arena"
	"github.com/freehold-go/freehold/track"
)

const sessionBytes = 64

// server is never closed, nor dropped.
var server = freehold.NewHeap(&freehold.HeapOptions{Name: "server"})

func open(a freehold.Allocator) []byte { return freehold.Must(a.Zeroed(sessionBytes, 8)) }

func end(a freehold.Allocator, session []byte) { a.Free(session) }

// leak forgets every tenth session, and to close an arena.
func leak(h *freehold.Heap) {
	sessions := freehold.NewTagged(h, "sessions")
	for i := range 100 {
		s := open(sessions)
		if i%10 > 0 {
			end(sessions, s)
		}
	}
	arena.New(h, &arena.Options{Name: "scratch"})
}

// useAfterFree ends a session, and then counts it.
func useAfterFree(h *freehold.Heap) {
	s := open(h)
	end(h, s)
	s[8]++
	h.Trim()
}

// overflow has a field that begins in a session and ends behind it.
func overflow(h *freehold.Heap) {
	s := open(h)
	*(*uint32)(unsafe.Add(unsafe.Pointer(&s[0]), sessionBytes-3)) = 1
	end(h, s)
}

// race counts in two goroutines. The race detector may miss one write, but not all.
func race(h *freehold.Heap) {
	s := open(h)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for i := range s {
				s[i]++
			}
		})
	}
	wg.Wait()
	end(h, s)
}

// A user is a Go value, to which a session must not point.
type user struct{ name string }

// goPointer stores a Go pointer by unsafe code.
func goPointer(h *freehold.Heap) {
	s := open(h)
	*(**user)(unsafe.Pointer(&s[16])) = &user{"ann"}
	found, err := track.CheckPointers(h)
	if err != nil {
		fmt.Println(err)
	}
	for _, p := range found {
		fmt.Println(p)
	}
	end(h, s)
}

var mistakes = map[string]func(*freehold.Heap){
	"leak": leak, "useafterfree": useAfterFree, "overflow": overflow, "race": race, "gopointer": goPointer,
}

func main() {
	defer track.AtExit()
	name, times := "", 1
	if len(os.Args) > 1 {
		name = os.Args[1]
	}
	var err error
	if len(os.Args) > 2 {
		times, err = strconv.Atoi(os.Args[2])
	}
	mistake := mistakes[name]
	if mistake == nil || err != nil {
		fmt.Fprintln(os.Stderr, "usage: mistakes leak|useafterfree|overflow|race|gopointer [TIMES]")
		os.Exit(2)
	}
	for range times {
		mistake(server)
	}
}
