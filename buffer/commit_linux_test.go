package buffer

import (
	"os"
	"runtime/debug"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A commit writes its slot before the slot counts: where it cannot be written, the other counts.
func TestCommitWritesTheSlotFirst(t *testing.T) {
	page := os.Getpagesize()
	mem, err := unix.Mmap(-1, 0, 2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(mem)
	header := mem[page-slotsAt:][:headerBytes] // its slots begin a page
	word := (*uint64)(unsafe.Pointer(&header[chooseAt]))
	*word = chosen[0]
	if err := unix.Mprotect(mem[page:], unix.PROT_READ); err != nil {
		t.Fatal(err)
	}
	f := &file{addr: uintptr(unsafe.Pointer(&header[0])), size: headerBytes, header: headerBytes}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if recover() == nil || *word != chosen[0] || f.committed != 0 {
			t.Errorf("%#x says which slot counts, want the first", *word)
		}
	}()
	f.commit(1)
}
