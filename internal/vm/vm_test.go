// Reserve, Commit, Decommit, Revoke, Renew and Move: their guarantees.

package vm

import (
	"bytes"
	"errors"
	"math"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/freehold-go/freehold/internal/panics"
)

// reserved returns n fresh pages.
func reserved(t testing.TB, n uintptr) (addr, size uintptr) {
	t.Helper()
	size = n * PageBytes()
	addr, err := Reserve(size, PageBytes())
	if err != nil {
		t.Fatal(err)
	}
	return addr, size
}

// committed returns n fresh pages, ready for use.
func committed(t testing.TB, n uintptr) (addr, size uintptr) {
	t.Helper()
	addr, size = reserved(t, n)
	must(t, Commit(addr, size))
	return addr, size
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// fill writes a pattern that differs from page to page.
func fill(addr, size uintptr) {
	for i, b := uintptr(0), bytesAt(addr, size); i < size; i++ {
		b[i] = pattern(i)
	}
}

func pattern(i uintptr) byte { return byte(i%251) + 1 }

// wantFilled checks that [addr, addr+size) has the pattern of fill, for a range that
// began skip bytes before addr.
func wantFilled(t *testing.T, addr, size, skip uintptr, why string) {
	t.Helper()
	for i, c := range bytesAt(addr, size) {
		if c != pattern(skip+uintptr(i)) {
			t.Fatalf("%s: byte %d is %d, want %d", why, i, c, pattern(skip+uintptr(i)))
		}
	}
}

func wantZero(t *testing.T, addr, size uintptr, why string) {
	t.Helper()
	for i, c := range bytesAt(addr, size) {
		if c != 0 {
			t.Fatalf("%s: byte %d is %d, want 0", why, i, c)
		}
	}
}

// faults reports whether f accesses inaccessible memory.
func faults(f func()) (fault bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		if err, ok := r.(runtime.Error); !ok || !strings.Contains(err.Error(), "invalid memory address") {
			panic(r)
		}
		fault = true
	}()
	f()
	return false
}

var sink byte

func readFaults(addr uintptr) bool { return faults(func() { sink = *(*byte)(Pointer(addr)) }) }

// pageTests hold for every page size, real or simulated.
var pageTests = []struct {
	name string
	test func(t *testing.T)
}{
	{"Reserve", testReserve},
	{"Commit", testCommit},
	{"Decommit", testDecommit},
	{"Revoke", testRevoke},
	{"RevokeWrites", testRevokeWrites},
	{"Renew", testRenew},
	{"Move", testMove},
	{"Preconditions", testPreconditions},
}

func TestPages(t *testing.T) {
	for _, tt := range pageTests {
		t.Run(tt.name, tt.test)
	}
}

// TestLargePages simulates larger system pages, as on arm64 and ppc64 machines.
func TestLargePages(t *testing.T) {
	defer func(bytes uintptr) { pageBytes = bytes }(pageBytes)
	pageBytes = max(64<<10, 4*pageBytes)
	for _, tt := range pageTests {
		t.Run(tt.name, tt.test)
	}
}

func TestPageBytes(t *testing.T) {
	if p := PageBytes(); p == 0 || p&(p-1) != 0 || HugePageBytes%p != 0 {
		t.Errorf("PageBytes is %d, want a power of two that divides a huge page", p)
	}
}

func testReserve(t *testing.T) {
	type reservation struct{ addr, size uintptr }
	var all []reservation
	page := PageBytes()
	for _, tt := range []struct{ size, align uintptr }{
		{page, page},
		{3 * page, 2 * page},   // size below and above the alignment
		{page, 16 * page},      //
		{page, 1 << 20},        // above Windows' 64 KiB
		{4 << 20, 4 << 20},     // as the engine does
		{page, HugePageBytes},  //
		{5 * page, 64 * page},  //
		{1 << 20, PageBytes()}, //
	} {
		addr, err := Reserve(tt.size, tt.align)
		must(t, err)
		if addr == 0 || addr%tt.align != 0 {
			t.Errorf("Reserve(%d, %d) = %#x, not aligned", tt.size, tt.align, addr)
		}
		for _, r := range all {
			if addr < r.addr+r.size && r.addr < addr+tt.size {
				t.Errorf("%d bytes at %#x and %d at %#x overlap", tt.size, addr, r.size, r.addr)
			}
		}
		all = append(all, reservation{addr, tt.size})
		must(t, Commit(addr, tt.size))
		wantZero(t, addr, tt.size, "fresh memory")
		fill(addr, tt.size)
	}
	if !GoBacked {
		addr, _ := reserved(t, 1)
		if !readFaults(addr) {
			t.Error("reserved memory may be read")
		}
	}
}

func TestMaxReserve(t *testing.T) {
	size := MaxReserve()
	for ; size >= 1<<20; size /= 2 {
		addr, err := Reserve(size, HugePageBytes)
		if err == nil {
			must(t, Commit(addr+size-PageBytes(), PageBytes()))
			*(*byte)(Pointer(addr + size - 1)) = 1
			must(t, Decommit(addr+size-PageBytes(), PageBytes()))
			t.Logf("reserved %d MiB of %d", size>>20, MaxReserve()>>20)
			return
		}
		if !errors.Is(err, ErrNoMemory) {
			t.Fatal(err)
		}
	}
	t.Error("not even 1 MiB can be reserved")
}

// TestReserveTooMuch reserves more than the address space or Go's heap has.
func TestReserveTooMuch(t *testing.T) {
	size := uintptr(1) << (30 + 20*(math.MaxInt>>62))
	if math.MaxInt == math.MaxInt32 && !GoBacked {
		t.Skip("4 GiB of address space may have room for the largest int")
	}
	addr, err := Reserve(size, size/2)
	if !errors.Is(err, ErrNoMemory) || addr != 0 {
		t.Errorf("Reserve(%d) = %#x, %v, want ErrNoMemory", size, addr, err)
	}
	var e *Error
	if !errors.As(err, &e) || e.Op != OpReserve || e.Size != size {
		t.Errorf("the error is %#v", err)
	}
}

func testCommit(t *testing.T) {
	page := PageBytes()
	addr, size := reserved(t, 8)
	must(t, Commit(addr+2*page, 2*page))
	wantZero(t, addr+2*page, 2*page, "first commit")
	fill(addr+2*page, 2*page)
	must(t, Commit(addr+2*page, 2*page))
	wantFilled(t, addr+2*page, 2*page, 0, "same pages again")
	must(t, Commit(addr, size))
	wantFilled(t, addr+2*page, 2*page, 0, "pages around them")
	wantZero(t, addr, 2*page, "before them")
	wantZero(t, addr+4*page, 4*page, "after them")
}

func testDecommit(t *testing.T) {
	page := PageBytes()
	addr, size := committed(t, 8)
	fill(addr, size)
	must(t, Decommit(addr+2*page, 3*page))
	if HolesReadZero {
		wantZero(t, addr+2*page, page, "without Commit")
		*(*byte)(Pointer(addr + 2*page)) = 1
		must(t, Decommit(addr+2*page, page))
	}
	must(t, Decommit(addr+2*page, 3*page)) // decommitted already
	must(t, Commit(addr+2*page, 3*page))
	wantZero(t, addr+2*page, 3*page, "decommitted")
	wantFilled(t, addr, 2*page, 0, "before the hole")
	wantFilled(t, addr+5*page, 3*page, 5*page, "after the hole")

	addr, size = reserved(t, 2)
	must(t, Decommit(addr, size)) // never committed
	must(t, Commit(addr, size))
	wantZero(t, addr, size, "never used")
}

func testRevoke(t *testing.T) {
	page := PageBytes()
	addr, size := committed(t, 4)
	fill(addr, size)
	must(t, Revoke(addr+page, 2*page))
	for _, at := range []uintptr{addr + page, addr + 3*page - 1} {
		if readFaults(at) == GoBacked {
			t.Errorf("access to a revoked page: fault is %v", !GoBacked)
		}
	}
	wantFilled(t, addr, page, 0, "before")
	wantFilled(t, addr+3*page, page, 3*page, "after")
	must(t, Revoke(addr+page, 2*page)) // again
	must(t, Decommit(addr+page, page))
	must(t, Commit(addr, size))
	wantZero(t, addr+page, 2*page, "committed again")
	wantFilled(t, addr, page, 0, "before, committed again")
}

func testRevokeWrites(t *testing.T) {
	page := PageBytes()
	addr, size := reserved(t, 4)
	must(t, Commit(addr, 2*page))
	fill(addr, 2*page)
	must(t, RevokeWrites(addr+page, 2*page)) // a committed and a reserved page
	if HolesReadZero {
		wantZero(t, addr+page, 2*page, "revoked")
	}
	if HolesReadZero && !GoBacked && !faults(func() { *(*byte)(Pointer(addr + page)) = 1 }) {
		t.Error("a write to a revoked page does not fault")
	}
	must(t, Commit(addr, size))
	wantZero(t, addr+page, 3*page, "committed again")
	wantFilled(t, addr, page, 0, "before")
}

func testRenew(t *testing.T) {
	page := PageBytes()
	addr, size := reserved(t, 6)
	must(t, Commit(addr, 4*page))
	fill(addr, 4*page)
	must(t, Revoke(addr+2*page, page))
	must(t, Renew(addr+page, 4*page)) // committed, revoked and reserved pages
	wantZero(t, addr+page, 4*page, "renewed")
	wantFilled(t, addr, page, 0, "before")
	fill(addr+page, 4*page)
	if !GoBacked && !readFaults(addr+5*page) {
		t.Error("Renew reached past the range")
	}
	must(t, Decommit(addr, size))
}

func testMove(t *testing.T) {
	page := PageBytes()
	src, size := committed(t, 8)
	fill(src, size)
	dst, _ := committed(t, 8)
	bytesAt(dst, size)[0] = 77

	err := Move(dst+page, src+page, 4*page)
	if errors.Is(err, ErrUnsupported) {
		wantFilled(t, src, size, 0, "src, after ErrUnsupported")
		if bytesAt(dst, size)[0] != 77 {
			t.Error("ErrUnsupported, but dst changed")
		}
		t.Skip("this system cannot move pages: ", err)
	}
	must(t, err)
	wantFilled(t, dst+page, 4*page, page, "dst")
	if bytesAt(dst, size)[0] != 77 {
		t.Error("the page before dst changed")
	}
	wantZero(t, dst+5*page, 3*page, "the pages after dst")
	wantZero(t, src+page, 4*page, "src")
	wantFilled(t, src, page, 0, "the page before src")
	wantFilled(t, src+5*page, 3*page, 5*page, "the pages after src")
	fill(src+page, 4*page) // src stays committed
	wantFilled(t, dst+page, 4*page, page, "dst, when src is written")

	must(t, Move(src+4*page, src, 4*page)) // adjacent ranges
	must(t, Move(src, src+4*page, 4*page))
	wantFilled(t, src, page, 0, "moved to its neighbour and back")

	fresh, _ := reserved(t, 8)
	must(t, Move(fresh+page, dst+page, 4*page)) // to inaccessible pages
	wantFilled(t, fresh+page, 4*page, page, "from reserved dst")
	must(t, Decommit(fresh+page, 4*page))
	wantZero(t, fresh+page, 4*page, "moved and decommitted")
}

func testPreconditions(t *testing.T) {
	page := PageBytes()
	addr, size := committed(t, 4)
	top := -page // the last page of the address space
	ops := map[string]func(addr, size uintptr){
		"commit":   func(addr, size uintptr) { Commit(addr, size) },
		"decommit": func(addr, size uintptr) { Decommit(addr, size) },
		"revoke":   func(addr, size uintptr) { Revoke(addr, size) },
		"renew":    func(addr, size uintptr) { Renew(addr, size) },
		"name":     func(addr, size uintptr) { Name(addr, size, "x") },
		"advise":   func(addr, size uintptr) { Advise(addr, size, WillNeed) },
		"move":     func(addr, size uintptr) { Move(addr, top-size, size) },
	}
	bad := []struct {
		addr, size uintptr
		why        string
	}{
		{addr, 0, "empty"},
		{0, page, "the nil page"},
		{addr + 1, page, "addr inside a page"},
		{addr + page/2, page / 2, "half a page"},
		{addr, page + 1, "size not whole pages"},
		{top, 2 * page, "wraps around"},
		{page, math.MaxInt &^ (page - 1) << 1, "size beyond int"},
	}
	for name, op := range ops {
		for _, tt := range bad {
			wantPanic(t, name+", "+tt.why, "freehold: vm: "+name+" of ", func() { op(tt.addr, tt.size) })
		}
	}
	for _, tt := range []struct {
		why string
		f   func()
	}{
		{"reserve of nothing", func() { Reserve(0, page) }},
		{"reserve of half a page", func() { Reserve(page/2, page) }},
		{"alignment zero", func() { Reserve(page, 0) }},
		{"alignment below a page", func() { Reserve(page, page/2) }},
		{"alignment no power of two", func() { Reserve(page, 3*page) }},
		{"size and alignment overflow", func() { Reserve(top-page, 2*page) }},
		{"size beyond int", func() { Reserve(math.MaxInt&^(page-1), 2*page) }},
		{"ranges overlap at the end", func() { Move(addr+page, addr, 2*page) }},
		{"ranges overlap at the start", func() { Move(addr, addr+page, 2*page) }},
		{"ranges are one", func() { Move(addr, addr, size) }},
		{"src not whole pages", func() { Move(addr, addr+page+1, page) }},
		{"no such advice", func() { Advise(addr, size, Advice(numAdvices)) }},
		{"negative advice", func() { Advise(addr, size, -1) }},
	} {
		wantPanic(t, tt.why, "freehold: vm: ", tt.f)
	}
}

func wantPanic(t *testing.T, why, prefix string, f func()) {
	t.Helper()
	if got := panics.Of(f); !strings.HasPrefix(got, prefix) {
		t.Errorf("%s: panic %q, want %q", why, got, prefix+"...")
	}
}

func TestAdvise(t *testing.T) {
	addr, size := committed(t, 4)
	for a := Normal; int(a) < numAdvices; a++ {
		// The kernel may have no free huge page now.
		if err := Advise(addr, size, a); err != nil && !errors.Is(err, ErrUnsupported) && !errors.Is(err, ErrNoMemory) {
			t.Errorf("advice %d: %v", a, err)
		}
	}
	fill(addr, size)
	wantFilled(t, addr, size, 0, "after all advice")
	for _, a := range []Advice{Normal, Sequential, Random, WillNeed, HugePages, Populate} {
		_ = Advise(addr, size, a)
		wantFilled(t, addr, size, 0, "after advice that keeps contents")
	}
}

// TestCollector runs the collector with pointers into pages of every state.
func TestCollector(t *testing.T) {
	page := PageBytes()
	addr, _ := committed(t, 4)
	must(t, Decommit(addr+page, page))
	must(t, Revoke(addr+2*page, page))
	pointers := []*byte{}
	for i := range uintptr(4) {
		pointers = append(pointers, (*byte)(Pointer(addr+i*page)))
	}
	for range 3 {
		runtime.GC()
	}
	*pointers[0] = 1
	if !bytes.Equal(bytesAt(addr, 2), []byte{1, 0}) {
		t.Error("the collector changed off-heap memory")
	}
	runtime.KeepAlive(pointers)
}

func TestResidentTakesAnElementForEachPage(t *testing.T) {
	size := 2 * PageBytes()
	addr, err := Reserve(size, PageBytes())
	must(t, err)
	must(t, Commit(addr, size))
	for _, n := range []int{0, 1, 3} {
		wantPanic(t, "2 pages", "freehold: vm: ", func() { Resident(addr, size, make([]byte, n)) })
	}
}
