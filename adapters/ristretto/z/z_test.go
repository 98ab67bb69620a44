package z_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	upstream "github.com/dgraph-io/ristretto/v2/z"
	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/adapters/ristretto/z"
	"github.com/freehold-go/freehold/internal/panics"
	"github.com/freehold-go/freehold/internal/test/suite"
)

func TestMain(m *testing.M) {
	z.Options.MaxBytes = 1 << 30
	code := m.Run()
	if code == 0 && z.NumAllocBytes() != 0 {
		fmt.Println(z.Leaks())
		code = 1
	}
	os.Exit(code)
}

func Example() {
	b := z.Calloc(100, "example")
	fmt.Println(len(b), z.NumAllocBytes())
	z.Free(b)

	buf := z.NewBuffer(1000, "example")
	for _, s := range []string{"b", "c", "a"} {
		buf.WriteSlice([]byte(s))
	}
	buf.SortSlice(func(l, r []byte) bool { return string(l) < string(r) })
	buf.SliceIterate(func(s []byte) error { fmt.Print(string(s), " "); return nil })
	buf.Release()
	fmt.Println(z.Leaks())
	// Output:
	// 100 100
	// a b c NO leaks found.
}

func TestCalloc(t *testing.T) {
	b := z.CallocNoRef(1000, "")
	if bytes.Count(b, []byte{0}) != 1000 || uintptr(unsafe.Pointer(&b[0]))%16 != 0 {
		t.Errorf("%d bytes at %p", len(b), b)
	}
	if s := z.Leaks(); !strings.HasPrefix(s, "1 blocks of 1000 bytes are allocated.\n") {
		t.Error(s)
	}
	var st z.MemStats
	if z.ReadMemStats(&st); st.Allocated < 1000 || st.Active < st.Allocated || st.Resident < st.Allocated {
		t.Errorf("%+v", st)
	}
	other := z.Calloc(2000, "")
	defer z.Free(other)
	z.Free(b[:1])
	z.Free(z.Calloc(0, ""))
	panics.Want(t, "freehold: Heap.Free: ...", func() { z.Free(b) })
	defer func() {
		if err, _ := recover().(error); !errors.Is(err, freehold.ErrOutOfMemory) {
			t.Errorf("beyond the limit: %v", err)
		}
	}()
	z.Calloc(2<<30-1, "")
}

func TestAllocator(t *testing.T) {
	a := z.NewAllocator(1000, "test")
	defer a.Release()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			want := bytes.Repeat([]byte{byte(i)}, 100)
			var all [][]byte
			for range 1000 {
				all = append(all, a.Copy(want))
				if b := a.AllocateAligned(24); bytes.Count(b, []byte{0}) != 24 || uintptr(unsafe.Pointer(&b[0]))%8 != 0 {
					t.Errorf("%x at %p", b, b)
				}
			}
			for _, b := range all {
				if !bytes.Equal(b, want) {
					t.Fatalf("%x, want %x", b, want)
				}
			}
		})
	}
	wg.Wait()
	if a.Size() != 8*1000*124 || a.Allocated() < uint64(a.Size()) || int64(a.Allocated()) != z.NumAllocBytes() {
		t.Errorf("%s%d bytes in all", a, z.NumAllocBytes())
	}
	if z.AllocatorFrom(a.Ref) != a || z.AllocatorFrom(a.Ref+1) != nil {
		t.Error("AllocatorFrom has another one")
	}
	if s := z.Allocators(); s != fmt.Sprintf("Tag: test Num: 1 Size: %d . ", a.Allocated()) {
		t.Error(s)
	}
	a.TrimTo(300 << 10)
	if a.Size() != 0 || a.Allocated() != 256<<10 {
		t.Errorf("after TrimTo: %s", a)
	}
	a.Copy(bytes.Repeat([]byte{0xFF}, 200<<10))
	a.Reset()
	if b := a.AllocateAligned(200 << 10); bytes.Count(b, []byte{0}) != len(b) {
		t.Error("a block on memory that was used is not zero")
	}
	a.Reset()
	for range 100 { // memory is reused
		a.Allocate(1 << 20)
		a.Reset()
	}
	if a.Allocated() > 4<<20 {
		t.Errorf("%d bytes for 1 MiB again and again", a.Allocated())
	}
	panics.Want(t, "freehold: z.Allocator.Allocate: size 1073741825, want 1073741824 at most", func() { a.Allocate(a.MaxAlloc() + 1) })
	if err := try(func() { a.Allocate(a.MaxAlloc()) }); !errors.Is(err, freehold.ErrOutOfMemory) { // the heap's limit
		t.Errorf("the largest size: %v", err)
	}

	var none *z.Allocator
	none.Release()
	if len(none.Allocate(5)) != 5 || len(none.AllocateAligned(5)) != 5 || string(none.Copy([]byte("x"))) != "x" {
		t.Error("a nil Allocator allocates nothing")
	}
}

// A pool keeps at most its maximum of allocators, hands them out again, and releases one after
// every two seconds without a Get.
func TestAllocatorPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := z.NewAllocatorPool(2)
		all := []*z.Allocator{p.Get(10, "a"), p.Get(10, "b"), p.Get(10, "c")}
		for _, a := range all {
			a.Allocate(100)
			p.Return(a)
		}
		if z.AllocatorFrom(all[2].Ref) != nil || z.AllocatorFrom(all[1].Ref) == nil {
			t.Error("the pool does not keep two")
		}
		if a := p.Get(10, "d"); a != all[1] || a.Tag != "d" || a.Size() != 0 {
			t.Errorf("Get: %p %q, %d bytes", a, a.Tag, a.Size())
		}
		p.Return(all[1])
		for _, want := range []int{2, 1, 0, 0} {
			time.Sleep(2*time.Second + 1)
			synctest.Wait()
			idle := 0
			for _, a := range all {
				if z.AllocatorFrom(a.Ref) != nil {
					idle++
				}
			}
			if idle != want {
				t.Errorf("%d are idle, want %d", idle, want)
			}
		}
		a, b := p.Get(10, "e"), p.Get(10, "f")
		p.Return(b)
		p.Release()
		p.Return(a)
		p.Return(nil)
		if z.AllocatorFrom(a.Ref) != nil || z.AllocatorFrom(b.Ref) != nil {
			t.Error("after Release of the pool some are left")
		}
	})
	var none *z.AllocatorPool
	none.Return(none.Get(10, "g"))
	none.Release()
}

// An idle Allocator keeps 400 MiB at most, and nearly that.
func TestAllocatorPoolKeepsAPartOfALargeAllocator(t *testing.T) {
	const most, chunk = 400 << 20, 4 << 20
	p := z.NewAllocatorPool(1)
	defer p.Release()
	a := p.Get(chunk, "")
	for a.Allocated() < most+10*chunk { // which is not touched, so it takes no memory
		a.Allocate(chunk / 2)
	}
	p.Return(a)
	if n := a.Allocated(); n > most || n < most-chunk {
		t.Errorf("%d bytes are kept, want about %d", n, most)
	}
}

// An Allocator that is returned a second time must not be two goroutines'.
func TestDoubleReturn(t *testing.T) {
	p := z.NewAllocatorPool(1)
	defer p.Release()
	a := p.Get(10, "")
	p.Return(a)
	panics.Want(t, "freehold: z.AllocatorPool.Return: Allocator "+fmt.Sprintf("%x", a.Ref)+" is in the pool already", func() { p.Return(a) })
}

// With -race: Allocators reads what Get and Return change.
func TestAllocatorPoolBesideOthers(t *testing.T) {
	p := z.NewAllocatorPool(2)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for j := range 200 {
				a := p.Get(10, string(rune('a'+j%4)))
				if b := a.Copy([]byte{byte(i)}); z.AllocatorFrom(a.Ref) != a || b[0] != byte(i) {
					t.Error("another one has the Allocator")
				}
				z.Allocators()
				p.Return(a)
			}
		})
	}
	wg.Wait()
	if p.Release(); z.Allocators() != "" {
		t.Error(z.Allocators())
	}
}

// buffers returns one buffer of each kind, and ristretto's equivalent.
func buffers(t *testing.T) (ours []*z.Buffer, theirs []*upstream.Buffer) {
	b, err := z.NewBufferTmp(t.TempDir(), 10)
	c, err2 := upstream.NewBufferTmp(t.TempDir(), 10)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	ours = []*z.Buffer{z.NewBuffer(10, "test"), b, z.NewBuffer(10, "test").WithAutoMmap(3000, t.TempDir())}
	theirs = []*upstream.Buffer{upstream.NewBuffer(10, "test"), c, upstream.NewBuffer(10, "test").WithAutoMmap(3000, t.TempDir())}
	t.Cleanup(func() {
		for i, b := range ours {
			if err := errors.Join(b.Release(), theirs[i].Release()); err != nil {
				t.Error(err)
			}
		}
	})
	return ours, theirs
}

// Buffers have the same bytes, offsets and slices as ristretto's.
func TestBuffersAgree(t *testing.T) {
	ours, theirs := buffers(t)
	for i, b := range ours {
		c := theirs[i]
		random := rand.New(rand.NewPCG(1, uint64(i)))
		for range 2000 {
			p := binary.BigEndian.AppendUint64(nil, random.Uint64())
			switch random.IntN(40) {
			case 0:
				b.Reset()
				c.Reset()
			case 1:
				if x, y := b.AllocateOffset(16), c.AllocateOffset(16); x != y {
					t.Fatalf("AllocateOffset: %d, want %d", x, y)
				}
				copy(b.Data(b.LenWithPadding() - 16)[:8], make([]byte, 8)) // a slice of 8 bytes
				b.Data(b.LenWithPadding() - 16)[7] = 8
				copy(b.Data(b.LenWithPadding()-8), p)
				copy(c.Data(c.LenWithPadding()-16), b.Data(b.LenWithPadding() - 16)[:16])
			case 2, 3, 4:
				less := func(l, r []byte) bool { return bytes.Compare(l, r) < 0 }
				b.SortSlice(less)
				c.SortSlice(less)
			case 5:
				if offsets := b.SliceOffsets(); len(offsets) > 2 { // the first stays where it is
					more := func(l, r []byte) bool { return bytes.Compare(l, r) > 0 }
					b.SortSliceBetween(offsets[1], b.LenWithPadding(), more)
					c.SortSliceBetween(offsets[1], c.LenWithPadding(), more)
				}
			case 6:
				frames := slices.Clone(z.NewBufferSlice(b.Bytes()).Bytes())
				b.Write(frames)
				c.Write(frames)
				b.Reset() // or sorts of equal slices differ
				c.Reset()
			default:
				b.WriteSlice(p)
				c.WriteSlice(p)
			}
			if !bytes.Equal(b.Bytes(), c.Bytes()) || b.LenWithPadding() != c.LenWithPadding() || b.LenNoPadding() != c.LenNoPadding() ||
				b.StartOffset() != c.StartOffset() || b.IsEmpty() != c.IsEmpty() || !b.IsEmpty() && !slices.Equal(b.SliceOffsets(), c.SliceOffsets()) {
				t.Fatalf("%d bytes, want %d", b.LenNoPadding(), c.LenNoPadding())
			}
		}
		var x, y []byte
		errX := b.SliceIterate(func(s []byte) error { x = append(x, s...); return nil })
		errY := c.SliceIterate(func(s []byte) error { y = append(y, s...); return nil })
		if errX != nil || errY != nil || !bytes.Equal(x, y) {
			t.Error("SliceIterate differs")
		}
	}
}

func TestBufferOverASlice(t *testing.T) {
	from := z.NewBuffer(10, "")
	defer from.Release()
	from.WriteSlice([]byte("one"))
	from.WriteSlice(nil)
	from.WriteSlice([]byte("two"))
	b := z.NewBufferSlice(from.Bytes())
	var got []string
	stop := errors.New("stop")
	if err := b.SliceIterate(func(s []byte) error { got = append(got, string(s)); return nil }); err != nil || !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("%q, %v", got, err)
	}
	if err := b.SliceIterate(func([]byte) error { return stop }); err != stop {
		t.Error(err)
	}
	if b.StartOffset() != 0 || b.LenWithPadding() != 30 || len(b.Data(11)) != 19 {
		t.Errorf("offsets from %d to %d", b.StartOffset(), b.LenWithPadding())
	}
	panics.Want(t, "freehold: z.Buffer.Grow: the buffer is over a slice", func() { b.Write(nil) })
	panics.Want(t, "freehold: z.Buffer.WithAutoMmap: ...", func() { b.WithAutoMmap(1, "") })
	if b.Reset(); !b.IsEmpty() || b.Release() != nil {
		t.Error("Reset leaves bytes")
	}
}

// Slices that are equal keep their order.
func TestSortSliceIsStable(t *testing.T) {
	b := z.NewBuffer(0, "")
	defer b.Release()
	for i := range uint16(3000) {
		b.WriteSlice(binary.BigEndian.AppendUint16([]byte{byte(i % 7)}, i))
	}
	b.SortSlice(func(l, r []byte) bool { return l[0] < r[0] })
	var last []byte
	b.SliceIterate(func(s []byte) error {
		if bytes.Compare(last, s) > 0 {
			t.Errorf("%x after %x", s, last)
		}
		last = s
		return nil
	})
}

func TestBufferLimits(t *testing.T) {
	b := z.NewBuffer(10, "").WithMaxSize(20)
	defer b.Release()
	b.Allocate(12)
	panics.Want(t, "freehold: z.Buffer: 1 bytes more than 20 pass the maximum of 20", func() { b.Allocate(1) })
	var none *z.Buffer
	if none.Release() != nil {
		t.Error("Release of nil")
	}
}

// A buffer that cannot be made or moved is an error, or a panic that leaves it as it was, and a
// directory is needed only beyond the threshold.
func TestBufferWithoutADirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "none")
	if _, err := z.NewBufferTmp(dir, 10); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	path := filepath.Join(t.TempDir(), "buffer")
	for range 2 { // the first leaves the file unlocked
		if _, err := z.NewBufferPersistent(path, math.MaxInt); err == nil || strings.Contains(err.Error(), "in use") {
			t.Error(err)
		}
	}
	b := z.NewBuffer(-1, "").WithMaxSize(70)
	defer b.Release()
	b.Write([]byte("data"))
	panics.Want(t, "*errors.joinError: freehold: buffer: temporary file in "+dir+": no such file or directory", func() { b.WithAutoMmap(3, dir) })
	b.WithAutoMmap(0, dir).WithAutoMmap(62, dir).Write(make([]byte, 58))
	panics.Want(t, "*fmt.wrapError: freehold: buffer: temporary file in "+dir+": no such file or directory", func() { b.WithMaxSize(0).Write(make([]byte, 100)) })
	if b.LenNoPadding() != 62 || string(b.Bytes()[:4]) != "data" {
		t.Errorf("%q", b.Bytes())
	}
}

// WithAutoMmap that finds no memory leaves the buffer as it was.
func TestAutoMmapWithoutMemory(t *testing.T) {
	b := z.NewBuffer(0, "")
	defer b.Release()
	b.Allocate(600 << 20)[0] = 1
	func() {
		defer func() {
			if err, _ := recover().(error); !errors.Is(err, freehold.ErrOutOfMemory) {
				t.Errorf("beyond the limit: %v", err)
			}
		}()
		b.WithAutoMmap(700<<20, "")
	}()
	if b.LenNoPadding() != 600<<20 || b.Bytes()[0] != 1 {
		t.Errorf("%d bytes are left", b.LenNoPadding())
	}
}

// The data may be a part of the buffer, which moves as it grows. Poison fills its old place.
func TestWriteOfItself(t *testing.T) {
	if os.Getenv("FREEHOLD_DEBUG") != "poison" {
		if out := suite.Rerun(t, "FREEHOLD_DEBUG=poison"); !strings.Contains(out, "PASS") {
			t.Error(out)
		}
		return
	}
	b := z.NewBuffer(0, "")
	defer b.Release()
	b.Write([]byte("abcd"))
	for range 10 {
		b.Write(b.Bytes())
	}
	if n := bytes.Count(b.Bytes(), []byte("abcd")); n != 1<<10 {
		t.Errorf("%d of %d are left", n, 1<<10)
	}
}

func TestPersistentBuffer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "buffer")
	for i := range 3 {
		b, err := z.NewBufferPersistent(path, 100)
		if err != nil || b.LenNoPadding() != i*13 {
			t.Fatalf("%d bytes: %v", b.LenNoPadding(), err)
		}
		b.WriteSlice([]byte("again"))
		if err := b.Release(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := z.NewBufferPersistent(filepath.Dir(path), 1); err == nil {
		t.Error("a directory is opened")
	}
}

func TestTree(t *testing.T) {
	tree, model := z.NewTree("test"), map[uint64]uint64{}
	defer tree.Close()
	random := rand.New(rand.NewPCG(1, 2))
	for i := range uint64(30_000) {
		k := 1 + random.Uint64N(10_000)
		tree.Set(k, i)
		model[k] = i
		if i%9_000 == 8_999 {
			tree.DeleteBelow(i - 2000)
			maps.DeleteFunc(model, func(_, v uint64) bool { return v < i-2000 })
		}
		if k = 1 + random.Uint64N(10_000); tree.Get(k) != model[k] {
			t.Fatalf("key %d: %d, want %d", k, tree.Get(k), model[k])
		}
	}
	last, n := uint64(0), 0
	tree.IterateKV(func(k, v uint64) uint64 {
		if k <= last || v != model[k] {
			t.Fatalf("key %d after %d: %d, want %d", k, last, v, model[k])
		}
		last, n = k, n+1
		return k % 2 * 7
	})
	for k, v := range model {
		if want := []uint64{v, 7}[k%2]; tree.Get(k) != want {
			t.Fatalf("key %d: %d, want %d", k, tree.Get(k), want)
		}
	}
	if st := tree.Stats(); st.NumLeafKeys != n || n != len(model) || st.Occupancy < 30 || st.Occupancy > 100 || st.Bytes < 16*n || st.NumPages*st.PageSize > st.Bytes {
		t.Errorf("%d entries: %+v", n, st)
	}
	tree.Reset()
	if tree.Get(last) != 0 || tree.Stats().NumLeafKeys != 0 {
		t.Error("Reset leaves entries")
	}
	for k := range uint64(3) {
		tree.Set(k+1, k) // the first has a value of 0, which is none
	}
	tree.IterateKV(func(k, v uint64) uint64 {
		if v == 0 {
			t.Errorf("key %d has no value", k)
		}
		return 0
	})
	if tree.DeleteBelow(2); tree.Get(2) != 0 || tree.Get(3) != 2 {
		t.Errorf("DeleteBelow(2) leaves %d and %d, want 0 and 2", tree.Get(2), tree.Get(3))
	}
	panics.Want(t, "freehold: z.Tree.Set: key 0, want 1 to 18446744073709551614", func() { tree.Set(0, 1) })
	panics.Want(t, "freehold: z.Tree.Get: key 18446744073709551615, want 1 to ...", func() { tree.Get(math.MaxUint64) })
}

// 100,000 slices of 60 bytes on average are appended and sorted.
func BenchmarkSortSlice(b *testing.B) {
	type sorter interface {
		WriteSlice([]byte)
		SortSlice(func(l, r []byte) bool)
		Release() error
	}
	less := func(l, r []byte) bool { return bytes.Compare(l, r) < 0 }
	for _, row := range []struct {
		name string
		make func() sorter
	}{{"ristretto", func() sorter { return upstream.NewBuffer(1000, "") }}, {"freehold", func() sorter { return z.NewBuffer(1000, "") }}} {
		b.Run("z="+row.name, func(b *testing.B) {
			p := make([]byte, 120)
			end := suite.Footprint(b)
			for b.Loop() {
				random := rand.New(rand.NewPCG(1, 2))
				buf := row.make()
				for range 100_000 {
					n := random.IntN(120)
					binary.BigEndian.PutUint64(p, random.Uint64())
					buf.WriteSlice(p[:n])
				}
				buf.SortSlice(less)
				buf.Release()
			}
			end()
		})
	}
}

// A million random keys are set and looked up.
func BenchmarkTree(b *testing.B) {
	type tree interface {
		Set(k, v uint64)
		Get(k uint64) uint64
		Close() error
	}
	for _, row := range []struct {
		name string
		make func() tree
	}{{"ristretto", func() tree { return upstream.NewTree("") }}, {"freehold", func() tree { return z.NewTree("") }}} {
		b.Run("z="+row.name, func(b *testing.B) {
			end := suite.Footprint(b)
			for b.Loop() {
				t := row.make()
				for i := range uint64(1 << 20) {
					t.Set(1+i*0x9E3779B97F4A7C15>>1, i)
				}
				for i := range uint64(1 << 20) {
					if t.Get(1+i*0x9E3779B97F4A7C15>>1) != i {
						b.Fatal("another value")
					}
				}
				t.Close()
			}
			end()
		})
	}
}

// Blocks of 100 bytes on all processors, 64 MiB of them before a Reset.
func BenchmarkAllocator(b *testing.B) {
	type allocator interface {
		Allocate(int) []byte
		Reset()
		Release()
	}
	for _, row := range []struct {
		name string
		make func() allocator
	}{{"ristretto", func() allocator { return upstream.NewAllocator(1<<20, "") }}, {"freehold", func() allocator { return z.NewAllocator(1<<20, "") }}} {
		b.Run("z="+row.name, func(b *testing.B) {
			a := row.make()
			defer a.Release()
			end := suite.Footprint(b)
			for b.Loop() {
				var wg sync.WaitGroup
				for range 2 {
					wg.Go(func() {
						for range 32 << 20 / 100 {
							a.Allocate(100)[0] = 1
						}
					})
				}
				wg.Wait()
				a.Reset()
			}
			end()
		})
	}
}
