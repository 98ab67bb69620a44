package arena_test

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/arena"
)

func ExampleShared() {
	s := arena.NewShared(freehold.Default(), &arena.SharedOptions{MaxBytes: 64 << 20})
	defer s.Close() // frees all that the goroutines allocated

	squares := make([]*uint64, 8)
	var wg sync.WaitGroup
	for i := range squares {
		wg.Go(func() {
			p, err := freehold.New[uint64](s)
			if err != nil {
				fmt.Println(err)
				return
			}
			*p = uint64(i * i)
			squares[i] = p
		})
	}
	wg.Wait()

	sum := uint64(0)
	for _, p := range squares {
		sum += *p
	}
	fmt.Println(sum, "in", s.Live(), "blocks")
	// Output: 140 in 8 blocks
}

// A table is replaced while readers use the old one.
func ExampleShared_Reset() {
	s := arena.NewShared(freehold.Default(), nil)
	defer s.Close()

	var current atomic.Pointer[[]int]
	load := func(version int) {
		table := freehold.Must(freehold.MakeSlice[int](s, 1000))
		for i := range table {
			table[i] = version
		}
		current.Store(&table)
	}
	load(1)

	reader := s.Enter() // protects the table that current points to
	table := *current.Load()

	current.Store(nil) // later readers do not find the old table
	s.Reset()
	load(2)

	fmt.Println("the reader has version", table[0], "of two:", s.Stats().Retired > 0)
	reader.Leave()
	fmt.Println("it has left, and its memory is back:", s.Stats().Retired == 0)
	// Output:
	// the reader has version 1 of two: true
	// it has left, and its memory is back: true
}
