// FrozenFile: the file of a Frozen, mapped into memory.
//
//	| header | starts | zeros | data: bucket 0, bucket 1, ... | zeros | checksums |
//	|<----------------------- blocks of 4 KiB --------------------->|
//
//	header     magic 8 B, version 4, byte order 4, entries 8, buckets 8, bytes of data 8,
//	           numbers of the hash seed 24, K and V as text; up to 4 KiB
//	starts     the offset in data of each bucket, and the end of the last; 8 B each
//	bucket     | key | value | key | value | ...      for types of fixed size, see frozenTypes.heads
//	           | size of heads | head | ... | key | value | ...      for all others
//	head       low byte of the hash, length of the key, length of the value
//	checksums  the CRC-32C of each block, 4 B each
//
// A key's bucket is hash * buckets / 2^64. A bucket has four entries on average, sorted by hash.
// Sizes in a bucket are varints, other numbers are little-endian. Keys and values have the byte
// order of the machine that wrote the file, which the header records.
//
// The CRC of a block starts from the file's id plus the block's number, so a block that was moved,
// or is from another file, fails it. A reader verifies each block once, when it first reads it, and
// then sets the block's bit. The bits are in chunks, which are made when a block of theirs is first
// read, so a huge file of holes takes little memory. A reader also checks all offsets and lengths
// against their bounds, because a forged file can have valid checksums.

package hashmap

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"math/bits"
	"os"
	"strings"
	"sync/atomic"
	"unsafe"

	"github.com/freehold-go/freehold/internal/hash"
	"github.com/freehold-go/freehold/internal/vm"
)

// frozenFile is the part of a Frozen that does not depend on its types.
type frozenFile struct {
	frozenTypes
	file    *os.File
	mem     []byte // the mapped file; nil after Close
	id      uint32 // low half of the seed's first number
	checked []atomic.Pointer[checkedBits]

	entries, buckets, dataBytes uint64
	data, sums                  uint64 // offsets of the data and of the checksums in the file
}

// checkedBits has a bit for each of checkedBlocks blocks, set once the block is verified.
type checkedBits [checkedBlocks / 32]atomic.Uint32

const checkedBlocks = 1 << 15 // 128 MiB of the file

const (
	frozenMagic   = "fhfrozen"
	frozenVersion = 2
	frozenOrder   = 0x01020304
	frozenTypesAt = 64
	frozenBlock   = 4096
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// dataOffset returns the offset of the data in a file with the given number of buckets.
func dataOffset(buckets uint64) uint64 { return wholeBlocks(frozenBlock + 8*(buckets+1)) }

// wholeBlocks rounds n up to blocks.
func wholeBlocks(n uint64) uint64 { return (n + frozenBlock - 1) &^ (frozenBlock - 1) }

func (f *frozenFile) open(path string) (err error) {
	info, err := os.Stat(path) // opening a pipe would wait for its other end
	if err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s: %w: it is no regular file", path, ErrCorrupt)
	}
	if f.file, err = os.Open(path); err != nil {
		return err
	}
	if info, err = f.file.Stat(); err != nil {
		return err
	}
	size := info.Size()
	switch {
	case size < 2*frozenBlock:
		return f.corrupt("it has %d bytes", size)
	case size > math.MaxInt-1<<16:
		return fmt.Errorf("%s: %d bytes do not fit the address space", path, size)
	}
	addr, err := vm.MapFile(f.file, uintptr(size), false)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	f.mem = unsafe.Slice((*byte)(vm.Pointer(addr)), int(size))
	return f.guarded(f.parse)
}

// parse reads and checks the header.
func (f *frozenFile) parse() error {
	h, size := f.mem[:frozenBlock], uint64(len(f.mem))
	number := binary.LittleEndian.Uint64
	if string(h[:8]) != frozenMagic {
		return f.corrupt("it does not begin as a frozen map")
	}
	if v := binary.LittleEndian.Uint32(h[8:]); v != frozenVersion {
		return f.corrupt("its version is %d, want %d", v, frozenVersion)
	}
	numbers := [3]uint64{number(h[40:]), number(h[48:]), number(h[56:])}
	f.entries, f.buckets, f.dataBytes = number(h[16:]), number(h[24:]), number(h[32:])
	if f.buckets == 0 || f.buckets > size/8 || max(f.entries, f.dataBytes) > size {
		return f.corrupt("its header has sizes beyond its %d bytes", size)
	}
	f.data = dataOffset(f.buckets)
	f.sums = wholeBlocks(f.data + f.dataBytes)
	blocks := f.sums / frozenBlock
	if want := f.sums + 4*blocks; want != size {
		return f.corrupt("it has %d bytes, want %d", size, want)
	}
	f.hash.seed, f.id = hash.SeedOf(numbers), uint32(numbers[0])
	f.checked = make([]atomic.Pointer[checkedBits], (blocks+checkedBlocks-1)/checkedBlocks)
	if err := f.check(0); err != nil {
		return err
	}
	if binary.NativeEndian.Uint32(h[12:]) != frozenOrder {
		return fmt.Errorf("%s: it was written on a machine of the other byte order", f.file.Name())
	}
	if was := strings.TrimRight(string(h[frozenTypesAt:]), "\x00"); was != f.text {
		return fmt.Errorf("%s: it maps %s, want %s", f.file.Name(), was, f.text)
	}
	return nil
}

func (f *frozenFile) corrupt(format string, args ...any) error {
	return fmt.Errorf("%s: %w: %s", f.file.Name(), ErrCorrupt, fmt.Sprintf(format, args...))
}

// guarded calls fn. It returns fn's error, or an error for a fault in the file.
func (f *frozenFile) guarded(fn func() error) error {
	return vm.CatchFaults(fn, func(addr uintptr) error {
		err := vm.FileFault(f.file, f.mem, false, addr)
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", f.file.Name(), err)
		}
		return err
	})
}

// at returns the n bytes at an offset of the file, and verifies their blocks first. It returns an
// error if they extend into the checksums.
func (f *frozenFile) at(offset, n uint64) ([]byte, error) {
	if offset > f.sums || n > f.sums-offset {
		return nil, f.corrupt("%d bytes at %d are beyond the data", n, offset)
	}
	for b := offset / frozenBlock; b*frozenBlock < offset+n; b++ {
		if chunk := f.checked[b/checkedBlocks].Load(); chunk == nil || chunk[b%checkedBlocks/32].Load()>>(b%32)&1 == 0 {
			if err := f.check(b); err != nil {
				return nil, err
			}
		}
	}
	return f.mem[offset:][:n:n], nil
}

// check verifies block b, and sets its bit.
func (f *frozenFile) check(b uint64) error {
	got := crc32.Update(f.id+uint32(b), castagnoli, f.mem[b*frozenBlock:][:frozenBlock])
	if got != binary.LittleEndian.Uint32(f.mem[f.sums+4*b:]) {
		return f.corrupt("the checksum of the block at byte %d is wrong", b*frozenBlock)
	}
	chunk := &f.checked[b/checkedBlocks]
	if chunk.Load() == nil {
		chunk.CompareAndSwap(nil, new(checkedBits))
	}
	chunk.Load()[b%checkedBlocks/32].Or(1 << (b % 32))
	return nil
}

// A bucketReader reads the entries of a bucket one after the other.
type bucketReader struct {
	heads   []byte // heads of the entries left
	at, end uint64 // offsets: the keys and values of the entries left
}

// A frozenEntry says where an entry is. Its value follows its key.
type frozenEntry struct {
	tag                  byte   // low byte of the hash, if there are heads
	at, keyLen, valueLen uint64 // at is the key's offset
}

// bucket returns a reader of bucket b.
func (f *frozenFile) bucket(b uint64) (r bucketReader, err error) {
	starts, err := f.at(frozenBlock+8*b, 16)
	if err != nil {
		return r, err
	}
	from, to := binary.LittleEndian.Uint64(starts), binary.LittleEndian.Uint64(starts[8:])
	if from > to || to > f.dataBytes {
		return r, f.corrupt("bucket %d is from %d to %d of %d bytes", b, from, to, f.dataBytes)
	}
	r = bucketReader{at: f.data + from, end: f.data + to}
	if !f.heads || from == to {
		return r, nil
	}
	first, err := f.at(r.at, min(to-from, binary.MaxVarintLen64))
	if err != nil {
		return r, err
	}
	size, n := binary.Uvarint(first)
	if n <= 0 || size > to-from-uint64(n) {
		return r, f.corrupt("bucket %d has heads beyond its end", b)
	}
	r.heads, err = f.at(r.at+uint64(n), size)
	r.at += uint64(n) + size
	return r, err
}

// next returns the next entry of a bucket, and whether there is one.
func (f *frozenFile) next(r *bucketReader) (p frozenEntry, ok bool, err error) {
	rest := r.end - r.at
	if rest == 0 && len(r.heads) == 0 {
		return p, false, nil
	}
	p = frozenEntry{at: r.at, keyLen: f.keyBytes, valueLen: f.valueBytes}
	n, m := 0, 0
	if f.heads && len(r.heads) > 0 {
		p.tag = r.heads[0]
		p.keyLen, n = binary.Uvarint(r.heads[1:])
		p.valueLen, m = binary.Uvarint(r.heads[1+max(n, 0):])
	}
	if f.heads && min(n, m) <= 0 || p.keyLen > rest || p.valueLen > rest-p.keyLen {
		return p, false, f.corrupt("an entry at byte %d is not within its bucket", r.at)
	}
	if f.heads {
		r.heads = r.heads[1+n+m:]
	}
	r.at += p.keyLen + p.valueLen
	return p, true, nil
}

// find returns the bytes of the value of a key with hash h, and whether the map has the key.
func (f *frozenFile) find(key string, h uint64) (value string, ok bool, err error) {
	b, _ := bits.Mul64(h, f.buckets)
	r, err := f.bucket(b)
	for err == nil {
		var p frozenEntry
		if p, ok, err = f.next(&r); !ok {
			break
		}
		if f.heads && (p.tag != byte(h) || p.keyLen != uint64(len(key))) {
			continue
		}
		var k, v []byte
		if k, err = f.at(p.at, p.keyLen); err == nil && string(k) == key {
			v, err = f.at(p.at+p.keyLen, p.valueLen)
			return unsafe.String(unsafe.SliceData(v), len(v)), err == nil, err
		}
	}
	return "", false, err
}

// each calls fn with the bytes of each key and value, until fn returns false.
func (f *frozenFile) each(fn func(key, value string) bool) error {
	for b := range f.buckets {
		r, err := f.bucket(b)
		if err != nil {
			return err
		}
		for {
			p, ok, err := f.next(&r)
			if err != nil {
				return err
			}
			if !ok {
				break
			}
			e, err := f.at(p.at, p.keyLen+p.valueLen)
			if err != nil {
				return err
			}
			e2 := unsafe.String(unsafe.SliceData(e), len(e))
			if !fn(e2[:p.keyLen], e2[p.keyLen:]) {
				return nil
			}
		}
	}
	return nil
}

func (f *frozenFile) close() (err error) {
	if f.mem != nil {
		err = vm.UnmapFile(uintptr(unsafe.Pointer(unsafe.SliceData(f.mem))), uintptr(len(f.mem)))
		f.mem = nil
	}
	if f.file != nil {
		err = errors.Join(err, f.file.Close())
	}
	return err
}
