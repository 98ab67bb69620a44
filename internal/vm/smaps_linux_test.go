// Smaps: the flags and names of mappings, as the kernel reports them.

//go:build !race

package vm

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/freehold-go/freehold/internal/test/child"
)

// smaps returns the name of the mapping that begins at addr and its other lines, by their
// first words; see proc(5).
func smaps(t *testing.T, addr uintptr) (name string, lines map[string][]string) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Skip("this system does not show mappings: ", err)
	}
	head := fmt.Sprintf("%08x-", addr)
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, head):
			name, lines = strings.Join(fields[min(5, len(fields)):], " "), map[string][]string{}
		case lines != nil && strings.Contains(fields[0], "-"): // the next mapping
			return name, lines
		case lines != nil:
			lines[fields[0]] = fields[1:]
		}
	}
	if lines == nil {
		t.Fatalf("no mapping begins at %#x", addr)
	}
	return name, lines
}

// dirtyBytes returns the sizes of the dirty pages of the mapping that begins at addr.
func dirtyBytes(t *testing.T, addr uintptr) (n int) {
	t.Helper()
	_, lines := smaps(t, addr)
	for _, line := range []string{"Shared_Dirty:", "Private_Dirty:"} {
		if len(lines[line]) == 0 {
			t.Skipf("this system does not show the pages at %#x", addr)
		}
		kilobytes, err := strconv.Atoi(lines[line][0])
		must(t, err)
		n += kilobytes << 10
	}
	return n
}

// After Sync the mapping has no dirty page.
func TestSyncCleansPages(t *testing.T) {
	skipUnderQEMU(t, "whose mappings are the host's")
	size := 16 * PageBytes()
	f := newFile(t, size)
	addr := mapped(t, f, size, true)
	fill(addr, size)
	if n := dirtyBytes(t, addr); n != int(size) {
		t.Skipf("%d bytes are dirty of %d written", n, size)
	}
	var s unix.Statfs_t
	must(t, unix.Fstatfs(int(f.Fd()), &s))
	if kind := uint32(s.Type); kind == unix.TMPFS_MAGIC || kind == unix.RAMFS_MAGIC {
		t.Skip("a file system in memory, whose pages stay dirty")
	}
	must(t, Sync(addr, size))
	if n := dirtyBytes(t, addr); n != 0 {
		t.Errorf("%d bytes are dirty after Sync", n)
	}
}

// wantFlag checks whether the mapping at addr has the flag.
func wantFlag(t *testing.T, addr uintptr, flag string, want bool, why string) {
	t.Helper()
	_, lines := smaps(t, addr)
	flags, found := lines["VmFlags:"]
	if !found {
		t.Skip("this system shows no flags of mappings")
	}
	if got := slices.Contains(flags, flag); got != want {
		t.Errorf("%s: flag %q is %v in %v", why, flag, got, flags)
	}
}

// alone returns committed pages that are one mapping: the page in front of them is inaccessible.
func alone(t *testing.T) (addr, size uintptr) {
	t.Helper()
	addr, size = reserved(t, 5)
	addr, size = addr+PageBytes(), size-PageBytes()
	must(t, Commit(addr, size))
	return addr, size
}

func TestAdviceIsWhatTheKernelIsTold(t *testing.T) {
	skipUnderQEMU(t, "whose mappings are the host's")
	for _, tt := range []struct {
		a, back Advice
		flag    string
	}{
		{Sequential, Normal, "sr"},
		{Random, Normal, "rr"},
		{HugePages, HugePages, "hg"}, // no advice undoes it
	} {
		addr, size := alone(t)
		if err := Advise(addr, size, tt.a); errors.Is(err, ErrUnsupported) {
			t.Logf("advice %d: %v", tt.a, err) // a kernel without huge pages
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		wantFlag(t, addr, tt.flag, true, fmt.Sprintf("advice %d", tt.a))
		must(t, Advise(addr, size, tt.back))
		wantFlag(t, addr, tt.flag, tt.back == tt.a, fmt.Sprintf("advice %d after %d", tt.back, tt.a))
	}
}

func TestPopulatedPagesAreResident(t *testing.T) {
	skipUnderQEMU(t, "whose mincore fails")
	addr, size := committed(t, 16)
	if err := Advise(addr, size, Populate); errors.Is(err, ErrUnsupported) {
		t.Skip("this kernel does not populate: ", err)
	} else if err != nil {
		t.Fatal(err)
	}
	if n := residentPages(t, addr, size); n != 16 {
		t.Errorf("%d of 16 pages are resident", n)
	}
}

// Decommit drops locked pages and keeps their lock.
func TestLockedPagesAreDecommitted(t *testing.T) {
	skipUnderQEMU(t, "whose mappings are the host's")
	addr, size := alone(t)
	if err := unix.Mlock(bytesAt(addr, size)); err != nil {
		t.Skip("the limit does not let pages be locked: ", err)
	}
	fill(addr, size)
	if err := Decommit(addr, size); err != nil {
		wantFilled(t, addr, size, 0, "not decommitted")
		t.Skip("this kernel keeps locked pages: ", err)
	}
	if n := residentPages(t, addr, size); n != 0 {
		t.Errorf("%d decommitted pages are resident", n)
	}
	wantFlag(t, addr, "lo", true, "decommitted")
	wantZero(t, addr, size, "decommitted")
}

// Reserved address space does not count against limits on memory.
func TestReservedPagesCountAsNoMemory(t *testing.T) {
	skipUnderQEMU(t, "whose mappings are the host's")
	if mode, err := os.ReadFile("/proc/sys/vm/overcommit_memory"); err != nil || mode[0] == '2' {
		t.Skip("this system counts all memory, or does not say")
	}
	addr, _ := alone(t)
	wantFlag(t, addr, "nr", true, "committed")
}

func TestNamesSayWhoseMemoryItIs(t *testing.T) {
	addr, size := alone(t)
	fill(addr, size)
	Name(addr, size, "a\x00b") // an invalid name is ignored
	wantFilled(t, addr, size, 0, "named")
	if err := setName(addr, size, "anything"); err != nil {
		t.Skip("this kernel does not name mappings: ", err)
	}
	Name(addr, size, "test")
	if name, _ := smaps(t, addr); name != "[anon:freehold: test]" {
		t.Errorf("the mapping is called %q", name)
	}
}

// Behind each reservation is an inaccessible page that nothing else uses. oneMapping relies on
// it: it asks the kernel to grow a range by a page, which must fail.
func TestReservationsHaveAPageBehindThem(t *testing.T) {
	var ends []uintptr
	for range 8 {
		addr, size := committed(t, 3) // the kernel places them next to each other
		ends = append(ends, addr+size)
	}
	for _, end := range ends {
		if in := mappings(t, end, PageBytes()); len(in) != 1 || in[0].access != "---p" {
			t.Errorf("behind the reservation that ends at %#x are %v, want one mapping without access", end, in)
		}
	}
}

// Go's heap needs addresses too, so the first reservation leaves most of them.
func TestFirstReservationIsAQuarterOfWhatIsLeft(t *testing.T) {
	skipUnderQEMU(t, "which ignores RLIMIT_AS")
	child.In(t, func() {
		lift := limit(t, unix.RLIMIT_AS, "VmSize", 1<<30)
		defer lift()
		// Other goroutines may take a few MiB meanwhile.
		if got := MaxReserve(); got != 128<<20 && got != 256<<20 {
			t.Errorf("%d bytes of 1 GiB, want the largest power of two in a quarter", got)
		}
	})
}

// Kernels before 5.7 refuse the flags of a move as invalid. This kernel refuses a source
// inside a page with the same error.
func TestMoveThatTheKernelCallsInvalidIsUnsupported(t *testing.T) {
	page := PageBytes()
	src, _ := committed(t, 2)
	dst, size := committed(t, 1)
	fill(dst, size)
	if err := moveMapping(dst, src+1, page); !errors.Is(err, ErrUnsupported) {
		t.Errorf("error %v, want ErrUnsupported", err)
	}
	wantFilled(t, dst, size, 0, "dst")
}
