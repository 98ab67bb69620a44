// Of: a cache of types, as bytes in a Cache.
//
//	K  --keys-->    key's bytes
//	V  --values-->  value's bytes      and back
//
// Types without Go pointers are their own bytes, and so are strings and []byte. Others need a Codec.

package cache

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/hash"
)

// A Codec turns values of a type into bytes and back.
type Codec[T any] struct {
	// Append appends the bytes of v to dst.
	Append func(dst []byte, v T) ([]byte, error)
	// Decode returns the value of bytes, which are the cache's: it must not keep them.
	Decode func(b []byte) (T, error)
}

// Of is a cache of keys and values of Go types, in a [Cache]: Resize, Stats, Close and the calls with
// bytes are those of that.
//
// Make one with [NewOf]. Calls are safe for concurrent use. Calls of the zero Of panic.
type Of[K comparable, V any] struct {
	*Cache
	keys   Codec[K]
	values Codec[V]
	rooms  sync.Pool // of *[]byte, for the bytes of keys and values
}

// OfOptions configures an [Of].
type OfOptions[K comparable, V any] struct {
	Options

	// Keys and Values may be nil for strings, for []byte as V, and for types without Go pointers, of
	// which two keys must be equal exactly if their bytes are: without padding and floats. NewOf
	// panics for other types. A key is never decoded.
	Keys   *Codec[K]
	Values *Codec[V]
}

// NewOf returns an empty cache: see [New].
func NewOf[K comparable, V any](parent freehold.Allocator, o *OfOptions[K, V]) *Of[K, V] {
	if o == nil {
		arg.Panicf("cache.NewOf", "options are nil, and MaxBytes is required")
	}
	c := &Of[K, V]{keys: codecOf("K=", o.Keys), values: codecOf("V=", o.Values)}
	if t := reflect.TypeFor[K](); o.Keys == nil && t.Kind() != reflect.String && !hash.IsPlain(t) {
		arg.Panicf("cache.NewOf", "a K of %v, with padding or floats, needs a Codec", t)
	}
	c.rooms.New = func() any { return new([]byte) }
	c.Cache = New(parent, &o.Options)
	return c
}

// Get returns the value of k, and whether there is one. A value that cannot be decoded is none.
func (c *Of[K, V]) Get(k K) (v V, ok bool) {
	c.withKey(k, func(key []byte) error {
		c.View(key, func(e Entry) {
			var err error
			v, err = c.values.Decode(e.Value)
			ok = err == nil
		})
		return nil
	})
	return v, ok
}

// Set stores v for k, with the TTL of the options. Errors are those of [Cache.Set] and of the codecs.
func (c *Of[K, V]) Set(k K, v V) error { return c.SetTTL(k, v, c.options.TTL) }

// SetTTL is Set with a TTL of the entry's own; 0 means that it stays until there is no room.
func (c *Of[K, V]) SetTTL(k K, v V, ttl time.Duration) error {
	return c.withKey(k, func(key []byte) error {
		room := c.rooms.Get().(*[]byte)
		defer c.rooms.Put(room)
		b, err := c.values.Append((*room)[:0], v)
		if err != nil {
			return err
		}
		*room = b
		return c.Cache.SetTTL(key, b, ttl)
	})
}

// Delete deletes the entry of k, and reports whether there was one.
func (c *Of[K, V]) Delete(k K) (found bool) {
	c.withKey(k, func(key []byte) error {
		found = c.Cache.Delete(key)
		return nil
	})
	return found
}

// GetOrLoad is [Cache.GetOrLoad] of a value: one load for all who wait.
func (c *Of[K, V]) GetOrLoad(ctx context.Context, k K, load func(ctx context.Context) (V, error)) (v V, err error) {
	err = c.withKey(k, func(key []byte) error {
		b, err := c.Cache.GetOrLoad(ctx, nil, key, func(ctx context.Context) (e Entry, err error) {
			v, err := load(ctx)
			if err == nil {
				e.Value, err = c.values.Append(nil, v)
			}
			return e, err
		})
		if err == nil {
			v, err = c.values.Decode(b)
		}
		return err
	})
	return v, err
}

// withKey calls f with the bytes of k.
func (c *Of[K, V]) withKey(k K, f func(key []byte) error) error {
	if c.Cache == nil {
		arg.Panicf("cache.Of", "zero value: cache.NewOf makes one")
	}
	room := c.rooms.Get().(*[]byte)
	defer c.rooms.Put(room)
	b, err := c.keys.Append((*room)[:0], k)
	if err != nil {
		return err
	}
	*room = b
	return f(b)
}

// codecOf returns codec, or if that is nil the one of types that are their own bytes.
func codecOf[T any](param string, codec *Codec[T]) Codec[T] {
	t := reflect.TypeFor[T]()
	switch {
	case codec != nil:
		return *codec
	case t.Kind() == reflect.String:
		return Codec[T]{
			Append: func(dst []byte, v T) ([]byte, error) { return append(dst, *(*string)(unsafe.Pointer(&v))...), nil },
			Decode: func(b []byte) (v T, _ error) {
				*(*string)(unsafe.Pointer(&v)) = string(b)
				return v, nil
			},
		}
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return Codec[T]{
			Append: func(dst []byte, v T) ([]byte, error) { return append(dst, *(*[]byte)(unsafe.Pointer(&v))...), nil },
			Decode: func(b []byte) (v T, _ error) {
				*(*[]byte)(unsafe.Pointer(&v)) = append([]byte{}, b...)
				return v, nil
			},
		}
	}
	arg.PointerFree("cache.NewOf", param, freehold.PointerFree[T]())
	return Codec[T]{
		Append: func(dst []byte, v T) ([]byte, error) { return append(dst, memory(&v)...), nil },
		Decode: func(b []byte) (v T, err error) {
			if copy(memory(&v), b) < len(memory(&v)) {
				err = fmt.Errorf("freehold: %d bytes are no %v", len(b), t)
			}
			return v, err
		},
	}
}

// memory returns the bytes of v.
func memory[T any](v *T) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v)) }
