package cache

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"
)

// A register is a key with one writer, which numbers its writes. Deletes have numbers too.
type register struct {
	key         []byte
	begun, done atomic.Uint64 // writes
	gone        atomic.Uint64 // a read has found that the cache dropped this write
}

// check fails unless a read may return write n, or none if n is 0. done and gone are the register's
// from before the read, and begun is from after it. So the reads and writes of a key are
// linearizable, if the cache may drop a write once and for all.
func (x *register) check(t *testing.T, call string, n, done, gone uint64) {
	begun := x.begun.Load()
	if n > 0 && (n < done || n > begun || n <= gone) {
		t.Errorf("%s of %q has write %d, after %d, %d was gone, %d has begun", call, x.key, n, done, gone, begun)
	}
	if n == 0 && done == begun { // write done was deleted or dropped
		for old := x.gone.Load(); done > old && !x.gone.CompareAndSwap(old, done); old = x.gone.Load() {
		}
	}
}

func numbered(key []byte, n uint64, size int) []byte {
	return append(binary.LittleEndian.AppendUint64(nil, n), checked(key, size)...)
}

// TestRegisters: while many goroutines read keys, each key's entry changes in the order of its
// writes, in memory and on disk. What was replaced, deleted or dropped never comes back.
func TestRegisters(t *testing.T) {
	for name, o := range map[string]Options{
		"small":   {MaxBytes: MinBytes},
		"sliding": {MaxBytes: MinBytes, TTL: time.Hour, Sliding: true},
		"shards":  {MaxBytes: 9 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			o.Disk = &Disk{Dir: t.TempDir(), MaxBytes: 8 << 20}
			registers(t, newShared(t, o), 1+2*(o.MaxBytes>>20))
		})
	}
}

func registers(t *testing.T, c *Cache, scale int) {
	const goroutines, each = 8, 50
	steps := 40_000
	if testing.Short() {
		steps = 4_000
	}
	all := make([]register, goroutines*each)
	for i := range all {
		all[i].key = fmt.Append(nil, "register ", i)
	}
	read := func(x *register, call string, f func(key []byte, f func(e Entry)) bool) {
		n, done, gone := uint64(0), x.done.Load(), x.gone.Load()
		f(x.key, func(e Entry) {
			if n = binary.LittleEndian.Uint64(e.Value); !isOf(x.key, e.Value[8:]) || e.Flags != n {
				t.Errorf("%s of %q has %d bytes, flags %d", call, x.key, len(e.Value), e.Flags)
			}
		})
		x.check(t, call, n, done, gone)
	}
	together(goroutines, func(g int) {
		r := rand.New(rand.NewPCG(uint64(g), 4))
		write := func(x *register, f func(n uint64)) {
			n := x.begun.Add(1)
			f(n)
			x.done.Store(n)
		}
		for range steps {
			x := &all[g*each+r.IntN(each)]
			size := r.IntN(3000) * scale
			entry := func(n uint64) Entry { return Entry{Value: numbered(x.key, n, size), Flags: n} }
			switch r.IntN(16) {
			case 0, 1:
				write(x, func(n uint64) { must(c.Put(x.key, entry(n))) })
			case 2:
				write(x, func(uint64) { c.Delete(x.key) })
			case 3:
				write(x, func(n uint64) {
					must(c.Update(x.key, func(e *Entry, found bool) Change {
						if found && binary.LittleEndian.Uint64(e.Value) != n-1 {
							t.Errorf("Update of %q finds write %d before %d", x.key, binary.LittleEndian.Uint64(e.Value), n)
						}
						*e = entry(n)
						return Store
					}))
				})
			case 4:
				had, done, gone := false, x.done.Load(), x.gone.Load()
				version := uint64(0)
				c.Peek(x.key, func(e Entry) {
					version, had = e.Version, true
					x.check(t, "Peek", binary.LittleEndian.Uint64(e.Value), done, gone)
				})
				if !had {
					break
				}
				n := x.begun.Add(1)
				if set := must(c.CompareAndSet(x.key, version, entry(n))); !set {
					c.Delete(x.key)
				}
				x.done.Store(n)
			case 5:
				c.Touch(x.key, time.Hour)
			default:
				x := &all[r.IntN(1+r.IntN(len(all)))]
				switch r.IntN(4) {
				case 0:
					read(x, "View", c.View)
				case 1:
					read(x, "Peek", c.Peek)
				case 2:
					read(x, "GetMany", func(key []byte, f func(e Entry)) bool {
						c.GetMany([][]byte{key}, func(_ int, e Entry) { f(e) })
						return true
					})
				case 3:
					read(x, "Get", func(key []byte, f func(e Entry)) bool {
						b, ok := c.Get(nil, key)
						if ok {
							f(Entry{Value: b, Flags: binary.LittleEndian.Uint64(b)})
						}
						return ok
					})
				}
			}
		}
	})
	c.check()
	st := c.Stats()
	t.Logf("%+v", st)
	if st.Disk.Hits == 0 || st.Disk.Errors > 0 {
		t.Errorf("%+v", st.Disk)
	}
}
