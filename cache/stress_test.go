package cache

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/freehold-go/freehold"
)

// together runs f in n goroutines and waits for them.
func together(n int, f func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { f(i) })
	}
	all.Wait()
}

func newHeap(t testing.TB) *freehold.Heap {
	heap := freehold.NewHeap(nil)
	t.Cleanup(heap.Close)
	return heap
}

func newShared(t testing.TB, o Options) *Cache {
	c := New(newHeap(t), &o)
	t.Cleanup(c.Close)
	return c
}

// checked returns a value of n bytes that depends on the key.
func checked(key []byte, n int) []byte {
	return bytes.Repeat(key, 1+n/len(key))
}

func isOf(key, value []byte) bool {
	return len(value) > 0 && len(value)%len(key) == 0 && bytes.Equal(value, bytes.Repeat(key, len(value)/len(key)))
}

// TestStress: while goroutines call all methods, a reader sees only complete values of its key.
func TestStress(t *testing.T) {
	const goroutines = 8
	steps := 20_000
	if testing.Short() {
		steps = 3_000
	}
	c := newShared(t, Options{MaxBytes: 1 << 20})
	var second atomic.Int64
	c.clock.coarse.Store(exact)
	c.clock.since = func(time.Time) time.Duration { return time.Duration(second.Load()) * time.Second }
	together(goroutines, func(g int) {
		r := rand.New(rand.NewPCG(uint64(g), 2))
		for range steps {
			n := r.IntN(1 << r.IntN(14))
			key := fmt.Append(nil, "key ", n)
			switch op := r.IntN(32); {
			case op < 12:
				if err := c.Set(key, checked(key, n%2000)); err != nil {
					t.Errorf("Set of %d bytes: %v", n%2000, err)
				}
			case op < 24:
				c.View(key, func(e Entry) {
					if !isOf(key, e.Value) {
						t.Errorf("%q has %q", key, e.Value)
					}
				})
			case op < 26:
				c.Delete(key)
			case op < 28:
				must(c.Update(key, func(e *Entry, found bool) Change {
					if found && !isOf(key, e.Value) {
						t.Errorf("Update of %q has %q", key, e.Value)
					}
					e.Value = append(e.Value[:len(e.Value):len(e.Value)], key...)
					return Store
				}))
			case op < 29:
				c.SetTTL(key, checked(key, n%100), time.Hour)
				c.Touch(key, time.Second<<(n%6))
			case op == 29 && n%16 == 0:
				second.Add(1)
				c.sweep()
				c.Resize(1<<20 - n*64)
			case op == 30 && n%64 == 0:
				c.Set(key, checked(key, 100_000))
			case op == 31 && n%512 == 0:
				for k, e := range c.All() {
					if !isOf(k, e.Value) {
						t.Errorf("All has %q with %q", k, e.Value)
					}
				}
			}
		}
	})
	c.check()
	if st := c.Stats(); st.Reserved > st.MaxBytes || st.Evicted == 0 || st.Expired == 0 {
		t.Errorf("%+v", st)
	}
}

// TestStressOfLoans: shards lend to each other, the bound changes, and readers hold entries. There
// is no deadlock, and the bound holds.
func TestStressOfLoans(t *testing.T) {
	const size = 8 << 20
	steps := 200
	if testing.Short() {
		steps = 40
	}
	c := newShared(t, Options{MaxBytes: size})
	together(4, func(g int) {
		r := rand.New(rand.NewPCG(uint64(g), 3))
		for i := range steps {
			key := fmt.Append(nil, "key ", r.IntN(20))
			value := checked(key, 1<<r.IntN(23))
			switch r.IntN(8) {
			case 0:
				c.Update(key, func(e *Entry, _ bool) Change { e.Value = value; return Store })
			case 1, 2, 3:
				c.View(key, func(e Entry) {
					c.Set(fmt.Append(nil, "key ", r.IntN(20)), nil)
					if len(e.Value) > 0 && !isOf(key, e.Value) {
						t.Error("a view changes")
					}
				})
			case 4:
				if g == 0 {
					c.Resize(size / 2 << (i % 2))
				}
			default:
				c.Set(key, value)
			}
			reserved := c.Stats().Reserved
			if reserved > size {
				t.Errorf("%d bytes of a bound of at most %d", reserved, size)
			}
		}
	})
	c.check()
}

// TestNothingIsLost: while there is room, goroutines find all keys that they have set, even if the
// index grows.
func TestNothingIsLost(t *testing.T) {
	const goroutines = 16
	each := 20_000
	if testing.Short() {
		each = 2_000
	}
	full := goroutines * each * 256
	c := newShared(t, Options{MaxBytes: full, OnEvict: func(key []byte, _ Entry, why Reason) {
		t.Errorf("%x dropped: %v", key, why)
	}})
	together(goroutines, func(g int) {
		for i := range each {
			key := binary.BigEndian.AppendUint64(nil, uint64(g)<<32|uint64(i))
			must(0, c.Set(key, key))
			older := binary.BigEndian.AppendUint64(nil, uint64(g)<<32|uint64(i/2))
			if got, ok := c.Get(nil, older); !ok || !bytes.Equal(got, older) {
				t.Errorf("Get(%x) = %x, %t, with %d set", older, got, ok, i)
			}
			if i%512 == g { // between sizes that all fits in
				c.Resize(full - full/4*(g%2))
			}
		}
	})
	c.check()
	if n := c.Len(); n != goroutines*each {
		t.Errorf("%d entries, want %d", n, goroutines*each)
	}
}

// TestHeldReaders: readers that stay in View keep their values, and no Set fails.
func TestHeldReaders(t *testing.T) {
	const held = 256
	c := newShared(t, Options{MaxBytes: 8 << 20})
	leave := make(chan bool)
	var readers, inside sync.WaitGroup
	for i := range held {
		key := fmt.Append(nil, "held ", i)
		must(0, c.Set(key, checked(key, 1000)))
		must(0, c.Set(fmt.Append(nil, "between ", i), make([]byte, 20_000)))
		inside.Add(1)
		readers.Go(func() {
			c.View(key, func(e Entry) {
				inside.Done()
				<-leave
				if !isOf(key, e.Value) {
					t.Errorf("%q has become %q", key, e.Value)
				}
			})
		})
	}
	inside.Wait()
	for i := range 20_000 {
		key := fmt.Append(nil, "new ", i)
		if err := c.Set(key, checked(key, 2000)); err != nil {
			t.Fatal(err)
		}
	}
	c.check()
	if st := c.Stats(); st.Reserved > st.MaxBytes {
		t.Errorf("%+v", st)
	}
	close(leave)
	readers.Wait()
	c.check()
}
