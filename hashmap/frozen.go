// Frozen: a read-only map in a file that any number of processes share.
//
//	entries --Freeze--> file at a path --OpenFrozen--> Frozen in each process
//
// freeze.go writes the file, frozen_file.go has its layout and reads it.

package hashmap

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/owners"
)

// ErrCorrupt matches errors of [OpenFrozen] and of a [Frozen] for a file that is not a frozen map,
// or is damaged or truncated.
var ErrCorrupt = errors.New("the file is not as Freeze wrote it")

// Frozen is a read-only map in a file that [Freeze] wrote. Any number of processes may open one
// file. They read it without locks, and share one copy of it in the system's file cache. A Frozen
// is safe for concurrent use, except for Close. [OpenFrozen] makes one. Calls of the zero Frozen
// panic, except Len and Close.
//
// The first read of a block of 4 KiB verifies its checksum. A read of a damaged block is an error
// that matches [ErrCorrupt]. If the file is truncated while it is open, a read of the lost part is an
// error that matches [io.ErrUnexpectedEOF] too. A block that was verified is not checked again. So a
// later change by another program is not detected, nor a truncation within the block, whose rest then
// reads as zeros.
type Frozen[K comparable, V any] struct{ frozenFile }

// OpenFrozen maps the file at path, which Freeze wrote, into memory. The time does not depend on the
// file's size, but for a word on the Go heap for each 128 MiB. The first read in each 128 MiB takes
// 4 KiB more. The file's pages are read when they are first used.
//
// The error matches [ErrCorrupt] if the header is not valid or does not match the file's length. It
// matches [errors.ErrUnsupported] on systems without mapped files. It is the system's if the file
// cannot be opened or mapped, for example because a 32-bit process has no addresses left for it.
//
// OpenFrozen also fails if the file was written for other types, or on a machine of the other byte
// order. Types agree if their layouts and the names of their fields do. An int agrees with the intN
// of its size. OpenFrozen panics for the types for which Freeze panics.
func OpenFrozen[K comparable, V any](path string) (*Frozen[K, V], error) {
	f := &Frozen[K, V]{frozenFile{frozenTypes: frozenTypesOf[K, V]("hashmap.OpenFrozen")}}
	if err := f.open(path); err != nil {
		_ = f.close()
		return nil, fmt.Errorf("freehold: hashmap.OpenFrozen: %w", err)
	}
	owners.Watch(f, "hashmap.Frozen", path)
	return f, nil
}

// Len returns the number of entries.
func (f *Frozen[K, V]) Len() int { return int(f.entries) }

// Get returns a copy of the value of k, and whether the map has k. See [Frozen] for errors.
func (f *Frozen[K, V]) Get(k K) (v V, ok bool, err error) {
	f.mustBeOpen("Get")
	err = f.guarded(func() (err error) {
		var value string
		if value, ok, err = f.find(textOf(f.keyKind, &k), hashOf(&f.hash, &k)); ok {
			v, err = frozenAs[V](&f.frozenFile, f.valueKind, value, copyOf[V])
		}
		return err
	})
	return v, ok && err == nil, err
}

// View calls fn with the value of k if the map has k, and reports whether it does. A string or
// []byte is the file's memory: it is valid until fn returns, and must not be written to. See
// [Frozen] for errors.
//
// If fn reads bytes that the file has lost meanwhile, or writes to the file's memory, it ends there
// as by a panic, so it must release locks by defer. View then returns an error, which matches
// [io/fs.ErrPermission] for a write. A system call in fn that accesses such bytes returns EFAULT to
// fn instead, and fn goes on.
func (f *Frozen[K, V]) View(k K, fn func(v V)) (ok bool, err error) {
	f.mustBeOpen("View")
	err = f.guarded(func() (err error) {
		var value string
		if value, ok, err = f.find(textOf(f.keyKind, &k), hashOf(&f.hash, &k)); ok {
			var v V
			if v, err = frozenAs(&f.frozenFile, f.valueKind, value, viewOf[V]); err == nil {
				fn(v)
			}
		}
		return err
	})
	return ok && err == nil, err
}

// Each calls fn with each entry, in no particular order, until fn returns false. Strings, bytes and
// faults are as in View. Before an error fn may have seen some of the entries.
func (f *Frozen[K, V]) Each(fn func(k K, v V) bool) error {
	f.mustBeOpen("Each")
	return f.guarded(func() error {
		var failed error
		err := f.each(func(key, value string) bool {
			k, err1 := frozenAs(&f.frozenFile, f.keyKind, key, viewOf[K])
			v, err2 := frozenAs(&f.frozenFile, f.valueKind, value, viewOf[V])
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

// Close unmaps the file. No other call may run at the same time. Later calls panic, except Len, and
// Close, which is then a no-op.
func (f *Frozen[K, V]) Close() error {
	if f.mem == nil {
		return nil
	}
	owners.Closed(f)
	return f.close()
}

func (f *frozenFile) mustBeOpen(call string) {
	switch {
	case f.file == nil:
		arg.Panicf("hashmap.Frozen."+call, "zero value: hashmap.OpenFrozen makes one")
	case f.mem == nil:
		arg.Panicf("hashmap.Frozen."+call, "the map is closed")
	}
}

// frozenAs returns the key or value with the given bytes. If T is a string or []byte, text makes it.
func frozenAs[T any](f *frozenFile, kind textKind, value string, text func(textKind, string) T) (v T, err error) {
	switch {
	case kind != isLarge:
		return text(kind, value), nil
	case uintptr(len(value)) != unsafe.Sizeof(v):
		return v, f.corrupt("a key or value has %d bytes, want %d", len(value), unsafe.Sizeof(v))
	}
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&v)), len(value)), value)
	return v, nil
}
