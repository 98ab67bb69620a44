// Persistent: a buffer in a file with a name.
//
// The file begins with a header:
//
//	offset  bytes
//	     0      8  "freehold"
//	     8      4  version, 1
//	    12      4  0
//	    16      8  the current slot: 0xA5A5A5A5A5A5A5A5 the first, 0x5A5A5A5A5A5A5A5A the second
//	    24     16  slot: length of the data (8), 0 (4), checksum (4)
//	    40     16  slot
//	  4096         the data
//
// Numbers are little-endian. A slot's checksum is the CRC-32C of the header's first
// 16 bytes, the slot's number (1 byte) and the slot's first 12 bytes.
//
// A commit writes the length into the other slot, and then makes it the current one by one
// store. So the current slot is whole whenever the process dies. The word that selects it is the
// same in either byte order.

package buffer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"sync/atomic"
	"unsafe"

	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/file/filelock"
	"github.com/freehold-go/freehold/internal/vm"
)

// Errors of [Open] and [NewRecords], for [errors.Is].
var (
	// ErrForeign says that the file is not a buffer's: it has another header, or a
	// version that this package does not know.
	ErrForeign = errors.New("not a freehold buffer")

	// ErrCorrupt says that the file's header is damaged, or that a record's length
	// exceeds the data.
	ErrCorrupt = errors.New("corrupt")

	// ErrTruncated says that the file is shorter than its data, but not empty.
	ErrTruncated = errors.New("the file is truncated")

	errHeader = fmt.Errorf("the header is %w", ErrCorrupt)

	errReadOnly = fmt.Errorf("freehold: the buffer is read-only: %w", fs.ErrPermission)
)

const (
	headerBytes = 4096
	magic       = "freehold"
	version     = 1
	prefixBytes = 16
	chooseAt    = 16
	slotsAt     = 24
	slotBytes   = 16
)

// chosen are the words for the first and for the second slot.
var chosen = [2]uint64{0xA5A5A5A5A5A5A5A5, 0x5A5A5A5A5A5A5A5A}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// OpenOptions sets up a [Buffer] of [Open]; nil means all defaults.
type OpenOptions struct {
	// MaxBytes is as in [Options]. A file with more data is not opened.
	MaxBytes int

	// Dir is the directory of the temporary file that a sort of the records needs. ""
	// means the directory of the buffer's own file.
	Dir string

	// ReadOnly opens the file for reading. It must exist and need not be writable.
	// Commit and Sync are no-ops. Calls that would change the data fail with an error
	// that matches [fs.ErrPermission], or panic if they return no error. A write to the
	// buffer's bytes faults.
	ReadOnly bool
}

// Open returns the buffer in a file, which it creates if there is none. The buffer has the
// length that was last committed: by [Buffer.Commit], Sync, Close, or a Truncate to less.
//
// After a Commit the data survives the end of the process, even by kill. After a Sync it
// survives the end of the system, even by loss of power. Data appended after the last commit is
// lost. Data changed in place after it may have its old or new contents.
//
// Errors match [ErrForeign], [ErrCorrupt] or [ErrTruncated] for a file that is not a whole
// buffer. They are the system's if the file cannot be opened, locked, given disk space or
// mapped. The file is then unchanged, or empty if Open has created it. An empty file is a new
// buffer, or ErrForeign with ReadOnly. A path that is not a regular file is ErrForeign and is
// not opened.
//
// A file can be open once, or any number of times with ReadOnly: Open locks it, where the system
// has locks. It allocates disk space for holes in the data, which a copy of a file may have.
func Open(path string, o *OpenOptions) (*Buffer, error) {
	if o == nil {
		o = &OpenOptions{}
	}
	arg.AtLeast("buffer.Open", "MaxBytes", o.MaxBytes, 0)
	b := &Buffer{opts: Options{MaxBytes: o.MaxBytes, Dir: o.Dir}}
	if o.Dir == "" {
		b.opts.Dir = filepath.Dir(path)
	}
	f, err := openFile(path, o.ReadOnly)
	if err != nil {
		return nil, fmt.Errorf("freehold: buffer: %w", err)
	}
	if b.n, err = f.load(o.MaxBytes); err != nil {
		_ = f.close()
		return nil, fmt.Errorf("freehold: buffer: %s: %w", path, err)
	}
	b.file, b.mem = f, f.capacity()
	return b, nil
}

// openFile opens or creates the file, and locks it.
func openFile(path string, readOnly bool) (*file, error) {
	flags := os.O_RDWR | os.O_CREATE
	if readOnly {
		flags = os.O_RDONLY
	}
	// Opening a pipe would wait for its other end.
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: %w: it is no regular file", path, ErrForeign)
	}
	f, err := os.OpenFile(path, flags, 0o666)
	if err != nil {
		return nil, err
	}
	if err := filelock.Lock(f, readOnly); err != nil {
		f.Close()
		if err == filelock.ErrInUse {
			err = errors.New("the file is open in another buffer")
		}
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &file{f: f, name: path, header: headerBytes, readOnly: readOnly}, nil
}

// load reads the header, maps the file up to the end of the data, and returns the length of the
// data. If the file is empty, it first writes a header.
func (f *file) load(maxBytes int) (n int, err error) {
	info, err := f.f.Stat()
	if err != nil {
		return 0, err
	}
	size := info.Size()
	fresh := size == 0 && !f.readOnly
	if fresh {
		defer func() {
			if err != nil {
				_ = f.unmap() // Windows does not truncate a mapped file
				_ = f.f.Truncate(0)
			}
		}()
		if err := f.create(); err != nil {
			return 0, err
		}
		size = headerBytes
	}
	var header [headerBytes]byte
	read, err := f.f.ReadAt(header[:], 0)
	if err != nil && err != io.EOF {
		return 0, err
	}
	length, err := parseHeader(header[:read], size-headerBytes)
	switch {
	case err != nil:
		return 0, err
	case maxBytes != 0 && length > int64(maxBytes):
		return 0, fmt.Errorf("it has %d bytes, more than MaxBytes, %d", length, maxBytes)
	case length > math.MaxInt-headerBytes:
		return 0, fmt.Errorf("%d bytes do not fit the address space", length)
	}
	n = int(length)
	f.size, f.committed, f.promised = headerBytes+n, n, size-headerBytes
	if !f.readOnly {
		if err := vm.ExtendFile(f.f, 0, int64(f.size)); err != nil { // a copy may have holes
			return 0, err
		}
	}
	if f.addr, err = vm.MapFile(f.f, uintptr(f.size), !f.readOnly); err != nil {
		return 0, err
	}
	if fresh {
		// Without this, a loss of power may leave a file that has grown and has no header.
		if err := f.flush(headerBytes); err != nil {
			return 0, err
		}
		err = filelock.SyncEntry(f.f.Name())
	}
	return n, err
}

// create writes the header of an empty buffer by one call, so that a kill leaves all of it or
// nothing.
func (f *file) create() error {
	var header [headerBytes]byte
	copy(header[:], magic)
	binary.LittleEndian.PutUint32(header[8:], version)
	putSlot(header[:], 0, 0)
	binary.LittleEndian.PutUint64(header[chooseAt:], chosen[0])
	_, err := f.f.WriteAt(header[:], 0)
	return err
}

// parseHeader returns the length in a header. The file has room for room bytes of data.
func parseHeader(header []byte, room int64) (n int64, err error) {
	switch {
	case len(header) < len(magic) || string(header[:len(magic)]) != magic:
		return 0, ErrForeign
	case len(header) < headerBytes:
		return 0, ErrTruncated
	}
	if v := binary.LittleEndian.Uint32(header[8:]); v != version {
		return 0, fmt.Errorf("%w of version %d: it has version %d", ErrForeign, version, v)
	}
	word := binary.LittleEndian.Uint64(header[chooseAt:])
	slot := 0
	if word == chosen[1] {
		slot = 1
	} else if word != chosen[0] {
		return 0, errHeader
	}
	s := header[slotsAt+slot*slotBytes:][:slotBytes]
	if binary.LittleEndian.Uint32(s[12:]) != checksum(header, slot) {
		return 0, errHeader
	}
	length := binary.LittleEndian.Uint64(s)
	if length > uint64(room) {
		return 0, fmt.Errorf("%w: it has room for %d bytes, and the header says %d", ErrTruncated, room, length)
	}
	return int64(length), nil
}

// putSlot writes length n and its checksum to a slot.
func putSlot(header []byte, slot, n int) {
	s := header[slotsAt+slot*slotBytes:][:slotBytes]
	binary.LittleEndian.PutUint64(s, uint64(n))
	binary.LittleEndian.PutUint32(s[8:], 0)
	binary.LittleEndian.PutUint32(s[12:], checksum(header, slot))
}

func checksum(header []byte, slot int) uint32 {
	sum := crc32.Update(0, castagnoli, header[:prefixBytes])
	sum = crc32.Update(sum, castagnoli, []byte{byte(slot)})
	return crc32.Update(sum, castagnoli, header[slotsAt+slot*slotBytes:][:slotBytes-4])
}

// commit makes n the current length in the mapped header.
func (f *file) commit(n int) {
	header := f.mapped()[:headerBytes]
	word := (*uint64)(unsafe.Pointer(&header[chooseAt]))
	slot := 0
	if atomic.LoadUint64(word) == chosen[0] {
		slot = 1
	}
	putSlot(header, slot, n)
	atomic.StoreUint64(word, chosen[slot])
	f.committed, f.promised = n, max(f.promised, int64(n))
}

// persistent reports whether b is in a writable file of Open.
func (b *Buffer) persistent() bool {
	return b.file != nil && b.file.header != 0 && !b.file.readOnly
}

// Commit makes the present length the length that [Open] will find. From then on the data
// survives the end of the process. It costs a few stores and a checksum. It is a no-op for a
// buffer that is not from Open.
func (b *Buffer) Commit() error {
	b.mustBeOpen("buffer.Buffer.Commit")
	if !b.persistent() {
		return nil
	}
	return b.guarded(func() error { b.file.commit(b.n); return nil })
}

// Sync commits, and returns when the disk has first the data and then its length. It is a no-op
// for a buffer that is not from [Open].
func (b *Buffer) Sync() error {
	b.mustBeOpen("buffer.Buffer.Sync")
	if !b.persistent() {
		return nil
	}
	return b.guarded(func() error { return b.file.sync(b.n) })
}

func (f *file) sync(n int) error {
	if err := f.mustBeWhole(); err != nil {
		return err
	}
	err := f.flush(f.size)
	if err == nil {
		f.commit(n)
		err = f.flush(headerBytes)
	}
	if err != nil {
		return f.failed(err)
	}
	return nil
}

// flush writes the first size bytes, which include the header, to disk.
func (f *file) flush(size int) error {
	err := vm.Sync(f.addr, uintptr(size))
	if err == nil {
		err = vm.SyncFile(f.f)
	}
	if err == nil {
		f.promised = int64(f.committed)
	}
	return err
}
