package hashmap

import (
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/freehold-go/freehold/alloctest"
)

// wide is a value whose words must be of one write: all are functions of the first.
type wide struct{ w [6]uint64 }

func wideOf(n uint64) (v wide) {
	fillWords(v.w[:], n)
	return v
}

func (v wide) whole() bool   { return v == wideOf(v.w[0]) }
func (v wide) first() uint64 { return v.w[0] }

// large is a wide that has a block of its own.
type large struct{ w [largeBytes / 8]uint64 }

func largeOf(n uint64) (v large) {
	fillWords(v.w[:], n)
	return v
}

func (v large) whole() bool   { return v == largeOf(v.w[0]) }
func (v large) first() uint64 { return v.w[0] }

func fillWords(w []uint64, n uint64) {
	for i := range w {
		w[i] = n * uint64(2*i+1)
	}
}

// words is wide or large.
type words interface {
	comparable
	whole() bool
	first() uint64
}

// beside runs writers, and readers until the writers have ended.
func beside(writers, readers []func(r *rand.Rand)) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(4, runtime.GOMAXPROCS(0))))
	var write, read sync.WaitGroup
	var stop atomic.Bool
	for i, f := range readers {
		read.Go(func() {
			for r := rand.New(rand.NewPCG(uint64(i), 1)); !stop.Load(); {
				f(r)
				if runtime.GOARCH == "wasm" { // which has one thread, and nothing that stops a loop
					runtime.Gosched()
				}
			}
		})
	}
	for i, f := range writers {
		write.Go(func() { f(rand.New(rand.NewPCG(uint64(i), 2))) })
	}
	write.Wait()
	stop.Store(true)
	read.Wait()
}

func rounds(n int) int {
	if testing.Short() {
		n /= 10
	}
	if readersLock {
		n /= 4
	}
	return n
}

// TestSharedValuesAreWhole: beside writers that replace, delete and add entries of few
// keys, and beside growth, a reader finds a value that was put for its key, or none.
func TestSharedValuesAreWhole(t *testing.T) {
	t.Run("wide", func(t *testing.T) { testSharedValuesAreWhole(t, wideOf) })
	t.Run("large", func(t *testing.T) { testSharedValuesAreWhole(t, largeOf) })
}

func testSharedValuesAreWhole[V words](t *testing.T, valueOf func(n uint64) V) {
	var none V
	for _, keys := range []int{1, 7, 300, 20_000} {
		t.Run(strconv.Itoa(keys)+" keys", func(t *testing.T) {
			m := NewShared[wide, V](alloctest.New(t), nil)
			defer m.Close()
			gets := gets(m)
			const ofKey = 1 << 20
			write := func(r *rand.Rand) {
				for range rounds(100_000) {
					n := r.Uint64N(uint64(keys))
					k := wideOf(n)
					switch r.IntN(4) {
					case 0:
						m.Delete(k)
					case 1:
						m.Update(k, func(v *V, found bool) {
							if !(*v).whole() || found != (*v != none) {
								t.Errorf("Update of %d has %v, %t", n, *v, found)
							}
							*v = valueOf((n+1)*ofKey + r.Uint64N(ofKey))
						})
					default:
						succeed(m.Put(k, valueOf((n+1)*ofKey+r.Uint64N(ofKey))))
					}
				}
			}
			read := func(r *rand.Rand) {
				n := r.Uint64N(uint64(keys))
				for call, get := range gets {
					if v, found := get(wideOf(n)); !v.whole() || found && v.first()/ofKey != n+1 || !found && v != none {
						t.Errorf("%s of %d is %v, %t", call, n, v, found)
					}
				}
			}
			scan := func(*rand.Rand) {
				for k, v := range m.All() {
					if !k.whole() || !v.whole() || v.first()/ofKey != k.first()+1 {
						t.Errorf("All has %v with %v", k, v)
					}
				}
			}
			beside([]func(*rand.Rand){write, write}, []func(*rand.Rand){read, read, scan})
			m.checkAll()
		})
	}
}

// TestSharedGrowsBesideReaders: keys that are there are found at any moment, whatever
// grows, splits and doubles around them.
func TestSharedGrowsBesideReaders(t *testing.T) {
	m := NewShared[uint64, uint64](alloctest.New(t), nil)
	defer m.Close()
	const stay = 1000
	for k := range uint64(stay) {
		succeed(m.Put(k, ^k))
	}
	more := uint64(rounds(400_000))
	write := func(from uint64) func(*rand.Rand) {
		return func(*rand.Rand) {
			for k := range more {
				k = stay + from*more + k
				succeed(m.Put(k, ^k))
				if v, found := m.Get(k); !found || v != ^k {
					t.Errorf("a writer finds %d, %t at its key %d", v, found, k)
				}
				if k%3 == 0 && !m.Delete(k) {
					t.Errorf("Delete(%d) found nothing", k)
				}
			}
		}
	}
	read := func(r *rand.Rand) {
		k := r.Uint64N(stay)
		if v, found := m.Get(k); !found || v != ^k {
			t.Errorf("Get(%d) = %d, %t", k, v, found)
		}
	}
	scan := func(*rand.Rand) {
		seen := map[uint64]bool{}
		stayed := 0
		for k := range m.All() {
			if seen[k] {
				t.Errorf("All has %d twice", k)
			}
			seen[k] = true
			if k < stay {
				stayed++
			}
		}
		if stayed != stay {
			t.Errorf("All has %d of %d entries", stayed, stay)
		}
	}
	beside([]func(*rand.Rand){write(0), write(1)}, []func(*rand.Rand){read, read, scan})
	m.checkAll()
	want := stay
	for k := uint64(stay); k < stay+2*more; k++ {
		_, found := m.Get(k)
		if found != (k%3 != 0) {
			t.Fatalf("Get(%d) is %t", k, found)
		}
		if found {
			want++
		}
	}
	if n := m.Len(); n != want {
		t.Errorf("Len is %d, want %d", n, want)
	}
}

// TestSharedTextIsNeverRecycled: alloctest fills freed blocks, so a reader of one would
// not find the bytes of its key.
func TestSharedTextIsNeverRecycled(t *testing.T) {
	m := NewShared[string, string](alloctest.New(t), nil)
	defer m.Close()
	const keys = 500
	key := func(n int) string { return "key " + strconv.Itoa(n) + strings.Repeat("k", n%40) }
	write := func(r *rand.Rand) {
		for range rounds(40_000) {
			k := key(r.IntN(keys))
			if r.IntN(3) == 0 {
				m.Delete(k)
			} else {
				succeed(m.Put(k, k+"="+strings.Repeat("v", r.IntN(100))))
			}
		}
	}
	gets := gets(m)
	read := func(r *rand.Rand) {
		k := key(r.IntN(keys))
		for call, get := range gets {
			if v, found := get(k); found && strings.TrimRight(v, "v") != k+"=" {
				t.Errorf("%s(%q) = %q", call, k, v)
			}
		}
	}
	scan := func(*rand.Rand) {
		for k, v := range m.All() {
			if strings.TrimRight(v, "v") != k+"=" {
				t.Errorf("All has %q with %q", k, v)
			}
		}
	}
	beside([]func(*rand.Rand){write, write}, []func(*rand.Rand){read, read, scan})
	m.checkAll()
}

// TestSharedUpdateCounts: no Update is lost.
func TestSharedUpdateCounts(t *testing.T) {
	m := NewShared[int, uint64](alloctest.New(t), nil)
	defer m.Close()
	n := rounds(200_000)
	count := func(r *rand.Rand) {
		for range n {
			succeed(m.Update(r.IntN(3000), func(v *uint64, _ bool) { *v++ }))
		}
	}
	beside([]func(*rand.Rand){count, count, count}, nil)
	sum := uint64(0)
	for _, v := range m.All() {
		sum += v
	}
	if sum != uint64(3*n) {
		t.Errorf("%d updates are counted, want %d", sum, 3*n)
	}
}

// TestSharedCallsOfAKeyAreLinearizable: one goroutine raises the value of each key, deleting and
// putting it too, so that what others read must never go back. A reader that has seen a round of a
// key sees that or a later one, or that the key is absent, from then on.
func TestSharedCallsOfAKeyAreLinearizable(t *testing.T) {
	const keys = 64
	m := NewShared[uint32, uint64](alloctest.New(t), nil)
	defer m.Close()
	var began, ended [keys]atomic.Uint64 // rounds of the writer
	write := func(r *rand.Rand) {
		for round := uint64(1); round <= uint64(rounds(20_000)); round++ {
			for k := range uint32(keys) {
				began[k].Store(round)
				if round%5 == 0 {
					m.Delete(k)
				} else {
					succeed(m.Put(k, round))
				}
				ended[k].Store(round)
			}
		}
	}
	read := func(r *rand.Rand) {
		k := r.Uint32N(keys)
		from := ended[k].Load()
		v, found := m.Get(k)
		to := began[k].Load()
		switch {
		case found && (v < from || v > to || v%5 == 0):
			t.Errorf("Get(%d) = %d between the rounds %d and %d", k, v, from, to)
		case !found && from/5 == to/5 && from%5 != 0:
			t.Errorf("Get(%d) found nothing between the rounds %d and %d", k, from, to)
		}
	}
	beside([]func(*rand.Rand){write}, []func(*rand.Rand){read, read})
}

// succeed panics if err is not nil.
func succeed(err error) {
	if err != nil {
		panic(err)
	}
}
