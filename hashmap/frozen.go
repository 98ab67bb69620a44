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
// The first call that reads a block of 4 KiB verifies its checksum. A call that reads a damaged
// block returns an error that matches [ErrCorrupt]. If the file is truncated while it is open, a
// call that reads the lost part does not fault: its error matches [io.ErrUnexpectedEOF] too. Not
// detected: changes by another program to blocks that were verified before, and a truncation within
// a page that was verified before. The rest of that page then reads as zeros.
type Frozen[K comparable, V any] struct{ frozenFile }

// OpenFrozen maps the file at path, which Freeze wrote, into memory. It allocates one bit on the Go
// heap for each 4 KiB of the file, and clears them: 32 KiB for a file of 1 GiB. Apart from that the
// time does not depend on the file's size. The file's pages are read when they are first used.
//
// The error matches [ErrCorrupt] if the header is not valid or the file's length does not agree
// with it, and [errors.ErrUnsupported] on systems without mapped files. It is the system's if the
// file cannot be opened or mapped, for example because a 32-bit process has no addresses left for
// it. OpenFrozen also fails if the file was written for other types, or on a machine of the other
// byte order. Types agree if their layouts and the names of their fields do. An int agrees with the
// intN of its size. OpenFrozen panics for the types for which Freeze panics.
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
// If fn reads bytes that the file has lost meanwhile, or writes to the file's memory, fn ends there
// as by a panic, so fn must release a lock by defer. View returns the error, which matches
// [io/fs.ErrPermission] for a write. But if a system call in fn accesses such bytes, it returns
// EFAULT to fn, and fn goes on.
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
// faults are as in View. If it returns an error, fn may have seen some of the entries.
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

// Close unmaps the file. No other call may be under way. Later calls panic, except Close, which is
// a no-op, and Len.
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

// frozenAs returns the key or value whose bytes are value. text makes it if T is a string or
// []byte.
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
