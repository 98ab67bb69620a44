// Linux: mappings, resident pages, and limits that make the kernel refuse.

package vm

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/freehold-go/freehold/internal/test/child"
)

type mapping struct {
	addr, end uintptr
	access    string // such as "rw-p"
}

// mappings returns the mappings in [addr, addr+size), from /proc/self/maps.
func mappings(t *testing.T, addr, size uintptr) (in []mapping) {
	t.Helper()
	f, err := os.Open("/proc/self/maps")
	must(t, err)
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var m mapping
		if _, err := fmt.Sscanf(lines.Text(), "%x-%x %s", &m.addr, &m.end, &m.access); err != nil {
			t.Fatalf("%q: %v", lines.Text(), err)
		}
		if m.addr < addr+size && addr < m.end {
			in = append(in, m)
		}
	}
	must(t, lines.Err())
	return in
}

// residentPages counts the pages of a range that physical memory backs.
func residentPages(t *testing.T, addr, size uintptr) (n int) {
	t.Helper()
	pages := make([]byte, size/PageBytes())
	must(t, Resident(addr, size, pages))
	for _, p := range pages {
		n += int(p & 1)
	}
	return n
}

func skipUnderQEMU(t *testing.T, why string) {
	t.Helper()
	addr, size := committed(t, 1)
	if unix.Madvise(bytesAt(addr, size), 12345) == nil {
		t.Skip("this is qemu-user, " + why)
	}
}

func skipGoBacked(t *testing.T) {
	t.Helper()
	if GoBacked {
		t.Skip("memory is Go's own in this build")
	}
}

func TestGuard(t *testing.T) {
	skipUnderQEMU(t, "which ignores advice it does not know")
	page := PageBytes()
	addr, size := committed(t, 3)
	fill(addr, size)
	if err := Advise(addr+page, page, Guard); err != nil {
		if !errors.Is(err, ErrUnsupported) {
			t.Fatal(err)
		}
		t.Skip("this system has no guard pages: ", err)
	}
	must(t, Decommit(addr+page, page))
	if !readFaults(addr + page) {
		t.Error("a guarded page may be read")
	}
	wantFilled(t, addr, page, 0, "before")
	wantFilled(t, addr+2*page, page, 2*page, "after")
	must(t, Advise(addr+page, page, Unguard))
	wantZero(t, addr+page, page, "unguarded")
	must(t, Advise(addr+page, page, Guard))
	must(t, Renew(addr+page, page))
	wantZero(t, addr+page, page, "guarded and renewed")
}

func TestDecommitReturnsMemory(t *testing.T) {
	skipGoBacked(t)
	skipUnderQEMU(t, "whose mincore fails")
	page := PageBytes()
	for _, drop := range []func(addr, size uintptr) error{Decommit, Revoke, Renew} {
		addr, size := committed(t, 64)
		if err := unix.Madvise(bytesAt(addr, size), unix.MADV_NOHUGEPAGE); err != nil && err != unix.EINVAL { // a kernel without huge pages
			t.Fatal(err)
		}
		if n := residentPages(t, addr, size); n != 0 {
			t.Errorf("%d pages are resident before the first touch", n)
		}
		fill(addr, size)
		must(t, drop(addr+16*page, 32*page))
		if n := residentPages(t, addr, size); n != 32 {
			t.Errorf("%d pages are resident, want 32 of 64", n)
		}
	}
}

func ignoreUnsupported(err error) error {
	if errors.Is(err, ErrUnsupported) {
		return nil
	}
	return err
}

// TestDecommitKeepsMappings: a hole does not split a mapping. A process may have 65,530
// of them.
func TestDecommitKeepsMappings(t *testing.T) {
	skipGoBacked(t)
	page := PageBytes()
	addr, size := committed(t, 20_000)
	for at := addr; at < addr+size; at += 2 * page {
		*(*byte)(Pointer(at)) = 1
		must(t, Decommit(at, page))
	}
	if in := mappings(t, addr, size); len(in) != 1 {
		t.Errorf("10,000 holes made %d mappings, want 1", len(in))
	}
}

func TestMoveLeavesNoPages(t *testing.T) {
	skipGoBacked(t)
	skipUnderQEMU(t, "whose mincore fails")
	src, size := committed(t, 16)
	dst, _ := committed(t, 16)
	fill(src, size)
	if err := Move(dst, src, size); err != nil {
		t.Skip("this kernel cannot move pages: ", err)
	}
	if from, to := residentPages(t, src, size), residentPages(t, dst, size); from != 0 || to != 16 {
		t.Errorf("%d pages are resident at src and %d at dst, want 0 and 16", from, to)
	}
}

// TestRenewJoins: ranges that Move and Revoke have split are one mapping again.
func TestRenewJoins(t *testing.T) {
	skipGoBacked(t)
	page := PageBytes()
	addr, size := committed(t, 64)
	other, _ := committed(t, 64)
	fill(addr, size)
	fill(other, size)
	for at := uintptr(0); at < size; at += 4 * page {
		must(t, Revoke(addr+at, page))
		must(t, ignoreUnsupported(Move(addr+at+2*page, other+at, page)))
	}
	if in := mappings(t, addr, size); len(in) < 32 {
		t.Fatalf("%d mappings, want the range cut up", len(in))
	}
	must(t, Renew(addr, size))
	if in := mappings(t, addr, size); len(in) != 1 || in[0].access != "rw-p" {
		t.Errorf("the mappings are %v, want one, rw-p", in)
	}
	wantZero(t, addr, size, "renewed")
}

// TestMoveSeveralMappings moves a range that earlier moves have split.
func TestMoveSeveralMappings(t *testing.T) {
	skipGoBacked(t)
	page := PageBytes()
	src, size := committed(t, 16)
	other, _ := committed(t, 16)
	dst, _ := committed(t, 16)
	fill(other, size)
	fill(dst, size)
	for at := uintptr(0); at < size; at += 3 * page {
		if err := Move(src+at, other+at, min(2*page, size-at)); err != nil {
			t.Skip("this kernel cannot move pages: ", err)
		}
		if at+2*page < size {
			copy(bytesAt(src+at+2*page, page), bytesAt(other+at+2*page, page))
		}
	}
	if n := len(mappings(t, src, size)); n < 6 {
		t.Fatalf("%d mappings, want src cut up", n)
	}
	wantFilled(t, src, size, 0, "src, before")
	must(t, Move(dst, src, size))
	wantFilled(t, dst, size, 0, "dst")
	wantZero(t, src, size, "src")
	fill(src, size) // src stays committed
}

// TestUnmapFileKeepsAddresses: Go's heap must never get them.
func TestUnmapFileKeepsAddresses(t *testing.T) {
	size := uintptr(8 << 20)
	f := newFile(t, size)
	addr, err := MapFile(f, size, true)
	must(t, err)
	stale := (*byte)(Pointer(addr))
	must(t, UnmapFile(addr, size))
	in := mappings(t, addr, size)
	if len(in) != 1 || in[0].access != "---p" || in[0].addr > addr || in[0].end < addr+size {
		t.Errorf("the mappings are %v, want one, ---p", in)
	}
	for range 64 {
		b := make([]byte, 4<<20)
		if at := uintptr(unsafe.Pointer(&b[0])); at < addr+size && addr < at+uintptr(len(b)) {
			t.Fatalf("Go's heap has %#x, which held a file", at)
		}
	}
	runtime.GC()
	runtime.KeepAlive(stale)
}

// TestMapFileJoins: the addresses of two adjacent files serve a larger one.
func TestMapFileJoins(t *testing.T) {
	half := uintptr(32 << 20) // more than the ranges that other tests leave
	f := newFile(t, 2*half)
	first, err := MapFile(f, 2*half, false)
	must(t, err)
	must(t, UnmapFile(first, 2*half))
	whole, err := MapFile(f, half, false) // not first, if another test left the range below
	must(t, err)
	must(t, UnmapFile(whole, half))
	for _, highFirst := range []bool{false, true} {
		low, err := MapFile(f, half, false)
		must(t, err)
		high, err := MapFile(f, half, false)
		must(t, err)
		if low != whole || high != whole+half {
			t.Fatalf("the halves are at %#x and %#x, want them at %#x", low, high, whole)
		}
		if highFirst {
			low, high = high, low
		}
		must(t, UnmapFile(low, half))
		must(t, UnmapFile(high, half))
		again, err := MapFile(f, 2*half, false)
		must(t, err)
		if again != whole {
			t.Fatalf("the whole is at %#x, want it at %#x again", again, whole)
		}
		must(t, UnmapFile(again, 2*half))
	}

	readOnly, err := os.Open(f.Name())
	must(t, err)
	defer readOnly.Close()
	if _, err := MapFile(readOnly, 2*half, true); !errors.Is(err, os.ErrPermission) {
		t.Fatalf("MapFile of a read-only file: %v", err)
	}
	if after := mapped(t, f, 2*half, false); after != whole {
		t.Errorf("after a failed MapFile the file is at %#x, want it at %#x", after, whole)
	}
}

// TestPlug closes a hole such as the failed system call of an old kernel leaves.
func TestPlug(t *testing.T) {
	skipGoBacked(t)
	page := PageBytes()
	addr, size := committed(t, 4)
	fill(addr, size)

	large, err := Reserve(128<<20, HugePageBytes)
	must(t, err)
	before := statusBytes(t, "VmSize")
	plug(addr+page, page, unix.PROT_NONE) // no hole: a no-op
	plug(large, 128<<20, unix.PROT_NONE)
	wantFilled(t, addr, size, 0, "no hole")
	if after := statusBytes(t, "VmSize"); after > before+64<<20 {
		t.Errorf("without a hole, plug took %d MiB of address space", (after-before)>>20)
	}

	must(t, unix.MunmapPtr(Pointer(addr+page), 2*page))
	plug(addr+page, 2*page, unix.PROT_READ|unix.PROT_WRITE)
	wantZero(t, addr+page, 2*page, "plugged, with access")
	wantFilled(t, addr, page, 0, "before")
	wantFilled(t, addr+3*page, page, 3*page, "after")

	must(t, unix.MunmapPtr(Pointer(addr+page), 2*page))
	plug(addr+page, 2*page, unix.PROT_NONE)
	if in := mappings(t, addr+page, 2*page); len(in) != 1 || in[0].access != "---p" {
		t.Errorf("the mappings are %v, want one, ---p", in)
	}
}

// TestErrnoClasses: the errors of a kernel that is out of memory.
func TestErrnoClasses(t *testing.T) {
	for errno, want := range map[unix.Errno]error{
		unix.ENOMEM: ErrNoMemory,
		unix.EAGAIN: ErrNoMemory,
		unix.ENOSYS: ErrUnsupported,
	} {
		if err := error(&Error{Op: OpCommit, Err: errno}); !errors.Is(err, want) || !errors.Is(err, errno) {
			t.Errorf("%v is not %v", err, want)
		}
	}
}

// statusBytes reads a line of /proc/self/status, such as VmSize.
func statusBytes(t *testing.T, line string) uint64 {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	must(t, err)
	_, after, _ := strings.Cut(string(status), line+":")
	var kib uint64
	_, err = fmt.Sscanf(after, "%d kB", &kib)
	must(t, err)
	return kib << 10
}

// limit lowers a limit of the process to its usage, by a line of /proc/self/status,
// plus more bytes. It returns a function that restores the limit.
func limit(t *testing.T, resource int, line string, more uint64) (lift func()) {
	t.Helper()
	var before unix.Rlimit
	must(t, unix.Getrlimit(resource, &before))
	now := before
	now.Cur = statusBytes(t, line) + more
	must(t, unix.Setrlimit(resource, &now))
	return func() { must(t, unix.Setrlimit(resource, &before)) }
}

func TestAddressSpaceLimit(t *testing.T) {
	skipGoBacked(t)
	skipUnderQEMU(t, "which ignores RLIMIT_AS")
	child.In(t, func() {
		addr, size := committed(t, 16)
		fill(addr, size)
		f := newFile(t, 512<<20)
		lift := limit(t, unix.RLIMIT_AS, "VmSize", 256<<20)

		reservations := 0
		for size := MaxReserve(); size >= 1<<20; {
			if _, err := Reserve(size, HugePageBytes); err == nil {
				reservations++
				continue
			} else if !errors.Is(err, ErrNoMemory) {
				t.Fatal(err)
			}
			size /= 2
		}
		if reservations == 0 || reservations > 256 {
			t.Errorf("%d reservations fit into 256 MiB", reservations)
		}
		if addr, err := MapFile(f, 512<<20, true); !errors.Is(err, ErrNoMemory) || addr != 0 {
			t.Errorf("MapFile: %#x, %v, want ErrNoMemory", addr, err)
		}
		wantFilled(t, addr, size, 0, "beside the limit")
		must(t, Decommit(addr, size))
		must(t, Renew(addr, size))
		must(t, Revoke(addr, size))
		must(t, Commit(addr, size))
		wantZero(t, addr, size, "beside the limit")

		lift()
		reserved(t, 16)
		mapped(t, f, 512<<20, true)
	})
}

// TestDataLimit: writable memory runs out, not address space.
func TestDataLimit(t *testing.T) {
	skipGoBacked(t)
	skipUnderQEMU(t, "which ignores RLIMIT_DATA")
	child.In(t, func() {
		const size = 128 << 20
		addr, err := Reserve(size, HugePageBytes)
		must(t, err)
		lift := limit(t, unix.RLIMIT_DATA, "VmData", 32<<20)

		if err := Commit(addr, size); !errors.Is(err, ErrNoMemory) {
			t.Errorf("Commit: %v, want ErrNoMemory", err)
		}
		if !readFaults(addr) {
			t.Error("Commit failed, but the memory may be read")
		}
		must(t, Commit(addr, 1<<20))
		fill(addr, 1<<20)
		if err := Renew(addr, size); !errors.Is(err, ErrNoMemory) {
			t.Errorf("Renew: %v, want ErrNoMemory", err)
		}
		if in := mappings(t, addr, size); len(in) != 1 || in[0].access != "---p" {
			t.Errorf("Renew failed and left %v, want one mapping, ---p", in)
		}

		lift()
		must(t, Commit(addr, size))
	})
}

// TestMoveDataLimit makes the kernel refuse a Move at its first mapping, or at the
// second after the first has moved. The kernel has unmapped dst by then.
func TestMoveDataLimit(t *testing.T) {
	skipGoBacked(t)
	skipUnderQEMU(t, "which ignores RLIMIT_DATA")
	child.In(t, func() {
		const first, size, filled = 32 << 20, 160 << 20, 40 << 20
		src, err := Reserve(size, HugePageBytes)
		must(t, err)
		dst, err := Reserve(size, HugePageBytes)
		must(t, err)
		must(t, Commit(src, size))
		must(t, Commit(dst, first))
		fill(dst, first)
		if err := Move(src, dst, first); err != nil {
			t.Skip("this kernel cannot move pages: ", err)
		}
		fill(src, filled)
		for _, more := range []uint64{first / 2, 2 * first} {
			must(t, Revoke(dst, size))
			lift := limit(t, unix.RLIMIT_DATA, "VmData", more)
			err = Move(dst, src, size)
			lift()
			if !errors.Is(err, ErrNoMemory) {
				t.Errorf("%d MiB left: Move: %v, want ErrNoMemory", more>>20, err)
			}
			wantFilled(t, src, filled, 0, "src")
			wantZero(t, src+filled, 1<<20, "src")
			if in := mappings(t, dst, size); in[0].addr > dst || in[len(in)-1].end < dst+size {
				t.Errorf("%d MiB left: dst is %v, not whole", more>>20, in)
			}
			must(t, Commit(dst, size))
			wantZero(t, dst, filled, "dst")
		}
		must(t, Move(dst, src, size))
		wantFilled(t, dst, filled, 0, "dst, without the limit")
	})
}
