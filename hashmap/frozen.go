// Frozen: a map in a file that any number of processes map into memory.
//
//	| header | starts | data: bucket 0, bucket 1, ... | zeros | checksums |
//	|<----------------------- blocks of 4 KiB ------------->|
//
//	header     magic 8 B, version 4, byte order 4, entries 8, buckets 8, bytes of data 8,
//	           numbers of the hash seed 24, K and V as text; up to 4 KiB
//	starts     the offset in data of each bucket, and the end of the last; 8 B each
//	bucket     | key | value | key | value | ...      for types of fixed size, see types.heads
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
// then sets the block's bit. It also checks all offsets and lengths against their bounds, because a
// forged file can have valid checksums.

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
	"reflect"
	"strings"
	"sync/atomic"
	"unsafe"

	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/hash"
	"github.com/freehold-go/freehold/internal/owners"
	"github.com/freehold-go/freehold/internal/vm"
)

// ErrCorrupt matches errors of [OpenFrozen] and of a [Frozen] for a file that is not a frozen map,
// or is damaged or truncated.
var ErrCorrupt = errors.New("the file is not as Freeze wrote it")

// Frozen is a read-only map in a file that [Freeze] wrote. Any number of processes may open one
// file. They read it without locks, and share one copy of it in the system's file cache. A Frozen
// is safe for concurrent use, except for Close. [OpenFrozen] makes one. Calls of the zero Frozen
// panic, except Len and Close.
//
// The first call that reads a block of 4 KiB verifies its checksum. A call that reads a damaged
// block returns an error that matches [ErrCorrupt]. If the file is truncated while it is open, a
// call that reads the lost part does not fault: its error matches [io.ErrUnexpectedEOF] too. Not
// detected: changes by another program to blocks that were verified before, and a truncation within
// a page that was verified before. The rest of that page then reads as zeros.
type Frozen[K comparable, V any] struct{ frozen }

// frozen is the part of a Frozen that does not depend on its types.
type frozen struct {
	types
	file    *os.File
	mem     []byte          // the mapped file; nil after Close
	id      uint32          // low half of the seed's first number
	checked []atomic.Uint32 // a bit for each block, set once the block is verified

	entries, buckets, dataBytes uint64
	data, sums                  uint64 // offsets of the data and of the checksums in the file
}

const (
	frozenMagic   = "fhfrozen"
	frozenVersion = 1
	frozenOrder   = 0x01020304
	frozenTypesAt = 64
	frozenBlock   = 4096
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// types describes K and V. A kind isLarge means that a key or value is stored as the bytes of its
// Go value.
//
// Buckets have heads if sizes vary. They also have heads if values are large, since a search skips
// an entry by its head without reading it, and if K and V have no bytes at all.
type types struct {
	hash                 hasher
	keyKind              textKind // isString or isLarge
	valueKind            textKind // isString, isBytes or isLarge
	keyBytes, valueBytes uint64   // sizes of K and V
	heads                bool     // buckets have heads
	text                 string   // the layouts of K and V, as the header has them
}

// typesOf returns the types of K and V. It panics in the name of call if Freeze cannot store them.
func typesOf[K comparable, V any](call string) types {
	kt, vt := reflect.TypeFor[K](), reflect.TypeFor[V]()
	t := types{keyKind: isString, keyBytes: uint64(kt.Size()), valueBytes: uint64(vt.Size())}
	t.hash, t.valueKind = kindsOf[K, V](call)
	if t.hash.kind == otherKeys {
		arg.Panicf(call, "K=%v, want string, or a type that is compared by its bytes: one without floats, padding and blank fields", kt)
	}
	t.heads = t.hash.kind == stringKeys || t.valueKind != noText || t.valueBytes >= largeBytes || t.keyBytes+t.valueBytes == 0
	if t.hash.kind == plainKeys {
		t.keyKind = isLarge
	}
	if t.valueKind == noText {
		t.valueKind = isLarge
	}
	var b strings.Builder
	describe(&b, kt)
	b.WriteString(" to ")
	describe(&b, vt)
	if t.text = b.String(); len(t.text) > frozenBlock-frozenTypesAt {
		sum := hash.SeedOf([3]uint64{})
		t.text = fmt.Sprintf("types with the hash %#x", sum.String(t.text))
	}
	return t
}

// describe writes the layout of a type: its kind, and the names, offsets and types of its fields.
func describe(b *strings.Builder, t reflect.Type) {
	switch t.Kind() {
	case reflect.Struct:
		fmt.Fprintf(b, "struct of %d B{", t.Size())
		for i := range t.NumField() {
			f := t.Field(i)
			fmt.Fprintf(b, "%s at %d ", f.Name, f.Offset)
			describe(b, f.Type)
			b.WriteByte(';')
		}
		b.WriteByte('}')
	case reflect.Array:
		fmt.Fprintf(b, "[%d]", t.Len())
		describe(b, t.Elem())
	case reflect.Slice:
		b.WriteString("bytes")
	case reflect.Int, reflect.Uint, reflect.Uintptr: // as int32 or int64, uint32 or uint64
		fmt.Fprintf(b, "%s%d", strings.TrimSuffix(t.Kind().String(), "ptr"), t.Bits())
	default:
		b.WriteString(t.Kind().String())
	}
}

// OpenFrozen maps the file at path, which Freeze wrote, into memory. It takes microseconds, and on
// the Go heap one bit for each 4 KiB of the file. The file's pages are read when they are first
// used.
//
// The error matches [ErrCorrupt] if the header is not valid or the file's length does not agree
// with it, and [errors.ErrUnsupported] on systems without mapped files. It is the system's if the
// file cannot be opened or mapped, for example because a 32-bit process has no addresses left for
// it. OpenFrozen also fails if the file was written for other types, or on a machine of the other
// byte order. Types agree if their layouts and the names of their fields do. An int agrees with the
// intN of its size. OpenFrozen panics for the types for which Freeze panics.
func OpenFrozen[K comparable, V any](path string) (*Frozen[K, V], error) {
	f := &Frozen[K, V]{frozen{types: typesOf[K, V]("hashmap.OpenFrozen")}}
	if err := f.open(path); err != nil {
		_ = f.close()
		return nil, fmt.Errorf("freehold: hashmap.OpenFrozen: %w", err)
	}
	owners.Watch(f, "hashmap.Frozen", path)
	return f, nil
}

func (f *frozen) open(path string) (err error) {
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
func (f *frozen) parse() error {
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
	f.data = frozenBlock + 8*(f.buckets+1)
	f.sums = (f.data + f.dataBytes + frozenBlock - 1) &^ (frozenBlock - 1)
	blocks := f.sums / frozenBlock
	if want := f.sums + 4*blocks; want != size {
		return f.corrupt("it has %d bytes, want %d", size, want)
	}
	f.hash.seed, f.id = hash.SeedOf(numbers), uint32(numbers[0])
	f.checked = make([]atomic.Uint32, (blocks+31)/32)
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

func (f *frozen) corrupt(format string, args ...any) error {
	return fmt.Errorf("%s: %w: %s", f.file.Name(), ErrCorrupt, fmt.Sprintf(format, args...))
}

// guarded calls fn. It returns fn's error, or an error for a fault in the file.
func (f *frozen) guarded(fn func() error) error {
	return vm.CatchFaults(fn, func(addr uintptr) error {
		at := addr - uintptr(unsafe.Pointer(unsafe.SliceData(f.mem)))
		if at >= uintptr(len(f.mem)) {
			return nil
		}
		info, err := f.file.Stat()
		if err == nil && info.Size() < int64(len(f.mem)) {
			return fmt.Errorf("%w: %w", f.corrupt("it was truncated from %d to %d bytes", len(f.mem), info.Size()), io.ErrUnexpectedEOF)
		}
		return fmt.Errorf("%s: the page with byte %d could not be read", f.file.Name(), at)
	})
}

// at returns the n bytes at an offset of the file, and verifies their blocks first. It returns an
// error if they extend into the checksums.
func (f *frozen) at(offset, n uint64) ([]byte, error) {
	if offset > f.sums || n > f.sums-offset {
		return nil, f.corrupt("%d bytes at %d are beyond the data", n, offset)
	}
	for b := offset / frozenBlock; b*frozenBlock < offset+n; b++ {
		if f.checked[b/32].Load()>>(b%32)&1 == 0 {
			if err := f.check(b); err != nil {
				return nil, err
			}
		}
	}
	return f.mem[offset:][:n:n], nil
}

// check verifies block b, and sets its bit.
func (f *frozen) check(b uint64) error {
	got := crc32.Update(f.id+uint32(b), castagnoli, f.mem[b*frozenBlock:][:frozenBlock])
	if got != binary.LittleEndian.Uint32(f.mem[f.sums+4*b:]) {
		return f.corrupt("the checksum of the block at byte %d is wrong", b*frozenBlock)
	}
	f.checked[b/32].Or(1 << (b % 32))
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
func (f *frozen) bucket(b uint64) (r bucketReader, err error) {
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
func (f *frozen) next(r *bucketReader) (p frozenEntry, ok bool, err error) {
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
func (f *frozen) find(key string, h uint64) (value string, ok bool, err error) {
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
func (f *frozen) each(fn func(key, value string) bool) error {
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

// Len returns the number of entries.
func (f *Frozen[K, V]) Len() int { return int(f.entries) }

// Get returns a copy of the value of k, and whether the map has k. See [Frozen] for errors.
func (f *Frozen[K, V]) Get(k K) (v V, ok bool, err error) {
	f.mustBeOpen("Get")
	err = f.guarded(func() (err error) {
		var value string
		if value, ok, err = f.find(textOf(f.keyKind, &k), hashOf(&f.hash, &k)); ok {
			v, err = frozenAs[V](&f.frozen, f.valueKind, value, copyOf[V])
		}
		return err
	})
	return v, ok && err == nil, err
}

// View calls fn with the value of k if the map has k, and reports whether it does. A string or
// []byte is the file's memory: it is valid until fn returns, and must not be written to. See
// [Frozen] for errors. If fn reads bytes that the file has lost meanwhile, fn ends there as by a
// panic, and View returns the error. So fn must release a lock by defer.
func (f *Frozen[K, V]) View(k K, fn func(v V)) (ok bool, err error) {
	f.mustBeOpen("View")
	err = f.guarded(func() (err error) {
		var value string
		if value, ok, err = f.find(textOf(f.keyKind, &k), hashOf(&f.hash, &k)); ok {
			var v V
			if v, err = frozenAs(&f.frozen, f.valueKind, value, viewOf[V]); err == nil {
				fn(v)
			}
		}
		return err
	})
	return ok && err == nil, err
}

// Each calls fn with each entry, in no particular order, until fn returns false. Strings, bytes and
// faults are as in View. If it returns an error, fn may have seen some of the entries.
func (f *Frozen[K, V]) Each(fn func(k K, v V) bool) error {
	f.mustBeOpen("Each")
	return f.guarded(func() error {
		var failed error
		err := f.each(func(key, value string) bool {
			k, err1 := frozenAs(&f.frozen, f.keyKind, key, viewOf[K])
			v, err2 := frozenAs(&f.frozen, f.valueKind, value, viewOf[V])
			failed = errors.Join(err1, err2)
			return failed == nil && fn(k, v)
		})
		return errors.Join(err, failed)
	})
}

// Verify reads the whole file and returns an error that matches [ErrCorrupt] if a checksum is
// wrong. Other calls may run at the same time.
func (f *Frozen[K, V]) Verify() error {
	f.mustBeOpen("Verify")
	return f.guarded(func() error {
		for b := range f.sums / frozenBlock {
			if err := f.check(b); err != nil {
				return err
			}
		}
		return nil
	})
}

// Close unmaps the file. No other call may be under way. Later calls panic, except Close, which is
// a no-op, and Len.
func (f *Frozen[K, V]) Close() error {
	if f.mem == nil {
		return nil
	}
	owners.Closed(f)
	return f.close()
}

func (f *frozen) close() (err error) {
	if f.mem != nil {
		err = vm.UnmapFile(uintptr(unsafe.Pointer(unsafe.SliceData(f.mem))), uintptr(len(f.mem)))
		f.mem = nil
	}
	if f.file != nil {
		err = errors.Join(err, f.file.Close())
	}
	return err
}

func (f *frozen) mustBeOpen(call string) {
	switch {
	case f.file == nil:
		arg.Panicf("hashmap.Frozen."+call, "zero value: hashmap.OpenFrozen makes one")
	case f.mem == nil:
		arg.Panicf("hashmap.Frozen."+call, "the map is closed")
	}
}

// frozenAs returns the key or value whose bytes are value. text makes it if T is a string or
// []byte.
func frozenAs[T any](f *frozen, kind textKind, value string, text func(textKind, string) T) (v T, err error) {
	switch {
	case kind != isLarge:
		return text(kind, value), nil
	case uintptr(len(value)) != unsafe.Sizeof(v):
		return v, f.corrupt("a key or value has %d bytes, want %d", len(value), unsafe.Sizeof(v))
	}
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&v)), len(value)), value)
	return v, nil
}
