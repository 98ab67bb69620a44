package guardlog

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/freehold-go/freehold/internal/vm"
)

// emptied empties the log before and after a test.
func emptied(t *testing.T) {
	clear := func() {
		if Open(); own.at.Load() == 0 {
			t.Fatal("no log")
		}
		for id := ID(1); id <= ID(own.header().records.Load()); id++ {
			*own.record(id) = record{}
		}
		own.header().records.Store(0)
		own.idle = nil
	}
	clear()
	t.Cleanup(clear)
}

//go:noinline
func allocated(id ID, addr, size uintptr) { id.Allocated(addr, size, "index") }

//go:noinline
func freed(id ID) { id.Freed() }

func TestFind(t *testing.T) {
	emptied(t)
	page := vm.PageBytes()
	const base = 1 << 24
	live, free := New(base, 2*page), New(base+2*page, 2*page)
	New(base+4*page, 2*page) // it has no block
	allocated(live, base+page-64, 64)
	allocated(free, base+3*page-100, 100)
	freed(free)
	for _, tt := range []struct {
		addr uintptr
		want string // without the address and the heap's name
	}{
		{base - page - 1, ""},
		{base - page, fmt.Sprintf("underflow: %d bytes before the beginning of a block of 64 bytes", 2*page-64)},
		{base + page - 65, "underflow: 1 byte before the beginning of a block of 64 bytes"},
		{base + page - 64, "access: byte 0 of a block of 64 bytes"},
		{base + page, "overflow: 1 byte past the end of a block of 64 bytes"},
		{base + page + 7, "overflow: 8 bytes past the end of a block of 64 bytes"},
		{base + 2*page - 1, fmt.Sprintf("use after free: %d bytes before the beginning of a block of 100 bytes", page-99)}, // more than a page past the other block
		{base + 3*page - 101, "use after free: 1 byte before the beginning of a block of 100 bytes"},
		{base + 3*page - 100, "use after free: byte 0 of a block of 100 bytes"},
		{base + 3*page - 1, "use after free: byte 99 of a block of 100 bytes"},
		{base + 3*page, "use after free: 1 byte past the end of a block of 100 bytes"},
		{base + 4*page, ""},
		{0, ""},
	} {
		b, found := Find(tt.addr)
		if found != (tt.want != "") {
			t.Errorf("%#x: found %v", tt.addr, found)
		} else if found {
			got := strings.Replace(b.Describe(tt.addr), fmt.Sprintf(" at %#x", tt.addr), "", 1)
			if want := tt.want + ` of heap "index"`; got != want {
				t.Errorf("%#x: %s\nwant %s", tt.addr, got, want)
			}
		}
	}
	free.Closed()
	if b, _ := Find(base + 3*page - 1); b.State != Closed {
		t.Errorf("closed: %+v", b)
	}
	// Another heap's run at the same addresses has its block elsewhere.
	other := New(base+2*page, 2*page)
	allocated(other, base+3*page-8, 8)
	if b, _ := Find(base + 3*page - 50); b.Size != 8 {
		t.Errorf("of a run and one of a closed heap: %+v", b)
	}
}

// innermost returns the names of the n innermost functions of this package in a stack.
func innermost(pcs []uintptr, n int) (names []string) {
	frames := runtime.CallersFrames(pcs)
	for more := true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		if name, own := strings.CutPrefix(f.Function, "github.com/freehold-go/freehold/internal/guardlog."); own {
			names = append(names, name)
		}
	}
	return names[:min(n, len(names))]
}

// Stacks have the functions of the calls, also when read through another mapping of the log.
func TestStacks(t *testing.T) {
	const pkg = "github.com/freehold-go/freehold/internal/guardlog"
	emptied(t)
	id := New(1<<24, 1<<14)
	allocated(id, 1<<24, 64)
	freed(id)
	blocks := []Block{id.Block()}
	if file := Open(); file != nil {
		log, err := Map(file)
		if err != nil {
			t.Fatal(err)
		}
		b, found := log.Find(1 << 24)
		if !found {
			t.Error("not found in another mapping")
		}
		blocks = append(blocks, b)
	}
	for _, b := range blocks {
		if got := innermost(b.Alloc, 3); !slices.Equal(got, []string{"ID.Allocated", "allocated", "TestStacks"}) {
			t.Errorf("allocated by %v", got)
		}
		if got := innermost(b.Free, 3); !slices.Equal(got, []string{"ID.Freed", "freed", "TestStacks"}) {
			t.Errorf("freed by %v", got)
		}
		if b.Heap != "index" || b.Size != 64 {
			t.Errorf("%+v", b)
		}
		if s := b.Stacks(); !strings.HasPrefix(s, "allocated at:\n\t"+pkg+".allocated\n\t\t") || !strings.Contains(s, "\nfreed at:\n\t"+pkg+".freed\n\t\t") || strings.HasSuffix(s, "\n") {
			t.Errorf("%s", s)
		}
	}
	allocated(id, 1<<24, 64)
	if b := id.Block(); len(b.Free) != 0 || strings.Contains(b.Stacks(), "freed") {
		t.Errorf("live again, and freed by %v", b.Free)
	}
}

// A full log has no record for a run until a heap is closed. Methods of ID 0 are no-ops.
func TestFullLog(t *testing.T) {
	emptied(t)
	first := New(1<<13, 1<<13)
	second := New(2<<13, 1<<13)
	own.header().records.Store(maxRecords)
	none := New(3<<13, 1<<13)
	if none != 0 {
		t.Errorf("record %d of %d", none, maxRecords)
	}
	none.Allocated(3<<13, 10, "")
	none.Freed()
	none.Closed()
	if b := none.Block(); b.Size != 0 || b.Stacks() != "" {
		t.Errorf("%+v", b)
	}
	second.Closed()
	first.Closed()
	for _, want := range []ID{second, first, 0} {
		if id := New(5<<13, 1<<13); id != want {
			t.Errorf("record %d, want %d", id, want)
		}
	}
	own.header().records.Store(2)
}

func TestLongNamesAreCut(t *testing.T) {
	emptied(t)
	id := New(1<<24, 1<<14)
	id.Allocated(1<<24, 1, strings.Repeat("x", 100))
	if b := id.Block(); b.Heap != strings.Repeat("x", maxName) {
		t.Errorf("%q", b.Heap)
	}
}

// A reader translates stacks of a process whose code is at a higher address.
func TestStacksOfCodeElsewhere(t *testing.T) {
	emptied(t)
	id := New(1<<24, 1<<14)
	allocated(id, 1<<24, 64)
	here := id.Block().Alloc
	own.header().anchor += 16
	defer func() { own.header().anchor -= 16 }()
	for i, pc := range id.Block().Alloc {
		if pc != here[i]-16 {
			t.Fatalf("%#x, want %#x", pc, here[i]-16)
		}
	}
}
