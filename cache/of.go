// Of: a cache of Go types, over a Cache of bytes.
//
//	K  --keys-->    key's bytes
//	V  --values-->  value's bytes      and back
//
// Types without Go pointers are their own bytes, and so are strings and []byte. Others need a
// Codec.

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
	"github.com/freehold-go/freehold/internal/container"
	"github.com/freehold-go/freehold/internal/hash"
)

// A Codec turns values of a type into bytes and back.
type Codec[T any] struct {
	// Append appends the bytes of v to dst, and must not keep dst. It may return other memory
	// instead, such as v's own bytes. The cache copies the result.
	Append func(dst []byte, v T) ([]byte, error)
	// Decode returns the value of b. b is the cache's memory: Decode must neither change nor keep
	// it. If Decode fails, the entry counts as missing. Decode may fail for an entry that another
	// version of the program has stored.
	Decode func(b []byte) (T, error)
}

// Of is a cache of keys and values of Go types. It embeds a [Cache], and so has Resize, Stats,
// Close and the calls with bytes too.
//
// Make one with [NewOf]. Calls are safe for concurrent use. Calls of the zero Of panic, except Len,
// Stats and Close.
type Of[K comparable, V any] struct {
	Cache
	keys    Codec[K]
	values  Codec[V]
	buffers sync.Pool // of *[]byte, buffers for the bytes of keys and values
}

// OfOptions configures an [Of].
type OfOptions[K comparable, V any] struct {
	Options

	// Keys and Values may be nil for strings, for []byte as V, and for types without Go pointers.
	// Keys of the last kind have neither padding nor floats: two keys must be equal exactly if
	// their bytes are. NewOf panics for other types, and for a Codec without Append, or without
	// Decode in Values. A key is never decoded.
	Keys   *Codec[K]
	Values *Codec[V]
}

var ofKind = container.Kind{Type: "cache.Of", Maker: "cache.NewOf", Is: "the cache is", Shared: true}

// NewOf returns an empty cache: see [New].
func NewOf[K comparable, V any](parent freehold.Allocator, o *OfOptions[K, V]) *Of[K, V] {
	if o == nil {
		arg.Panicf("cache.NewOf", "options are nil, and MaxBytes is required")
	}
	c := &Of[K, V]{keys: codecOf("K=", o.Keys), values: codecOf("V=", o.Values)}
	if o.Keys != nil && o.Keys.Append == nil || o.Values != nil && (o.Values.Append == nil || o.Values.Decode == nil) {
		arg.Panicf("cache.NewOf", "a Codec needs Append, and one of values Decode too")
	}
	if t := reflect.TypeFor[K](); o.Keys == nil && t.Kind() != reflect.String && !hash.IsPlain(t) {
		arg.Panicf("cache.NewOf", "a K of %v, with padding or floats, needs a Codec", t)
	}
	c.buffers.New = func() any { return new([]byte) }
	c.Cache.init(parent, &o.Options)
	return c
}

// Get returns the value of k, and whether there is one. A value that cannot be decoded counts as
// missing. Stats counts it in Misses and in Undecodable.
func (c *Of[K, V]) Get(k K) (v V, ok bool) {
	c.base.MustBeOpen(&ofKind, "Get")
	c.withKey(k, func(key []byte) error {
		_, err := c.lookUp(key, c.decodeTo(&v), true)
		ok = err == nil
		return nil
	})
	return v, ok
}

// decodeTo returns a function that decodes a value to *v. If that fails, *v is unchanged.
func (c *Of[K, V]) decodeTo(v *V) func(value []byte) error {
	return func(value []byte) error {
		got, err := c.values.Decode(value)
		if err == nil {
			*v = got
		}
		return err
	}
}

// Set stores v for k, with the TTL of the options. It returns the errors of [Cache.Set] and of the
// codecs.
func (c *Of[K, V]) Set(k K, v V) error {
	c.base.MustBeOpen(&ofKind, "Set")
	return c.withBoth(k, v, func(key, value []byte) error { return c.Cache.Set(key, value) })
}

// SetTTL is Set with the entry's own TTL. With 0 the entry does not expire.
func (c *Of[K, V]) SetTTL(k K, v V, ttl time.Duration) error {
	c.base.MustBeOpen(&ofKind, "SetTTL")
	return c.withBoth(k, v, func(key, value []byte) error { return c.Cache.SetTTL(key, value, ttl) })
}

// Delete deletes the entry of k, and reports whether there was one.
func (c *Of[K, V]) Delete(k K) (found bool) {
	c.base.MustBeOpen(&ofKind, "Delete")
	c.withKey(k, func(key []byte) error {
		found = c.Cache.Delete(key)
		return nil
	})
	return found
}

// GetOrLoad is [Cache.GetOrLoad] with types: one load for all goroutines that wait. An entry that
// cannot be decoded is loaded again and replaced. Each caller decodes the bytes of the loaded
// value, and gets the result or the error of Decode.
func (c *Of[K, V]) GetOrLoad(ctx context.Context, k K, load func(ctx context.Context) (V, error)) (v V, err error) {
	c.base.MustBeOpen(&ofKind, "GetOrLoad")
	err = c.withKey(k, func(key []byte) error {
		decode := c.decodeTo(&v)
		if _, err := c.lookUp(key, decode, true); err != errMissing {
			return err
		}
		return c.loadMissing(ctx, key, decode, func(ctx context.Context) (e Entry, err error) {
			v, err := load(ctx)
			if err == nil {
				e.Value, err = c.values.Append(nil, v)
			}
			return e, err
		})
	})
	return v, err
}

// withBoth calls f with the bytes of k and of v.
func (c *Of[K, V]) withBoth(k K, v V, f func(key, value []byte) error) error {
	return c.withKey(k, func(key []byte) error {
		return withBytes(&c.buffers, &c.values, v, func(value []byte) error { return f(key, value) })
	})
}

// withKey calls f with the bytes of k.
func (c *Of[K, V]) withKey(k K, f func(key []byte) error) error {
	return withBytes(&c.buffers, &c.keys, k, f)
}

// withBytes calls f with the bytes of v. The codec gets a buffer to append to. If the
// bytes are larger than the buffer, a new buffer of their size replaces it. The bytes themselves
// are not kept, since they may be memory of the codec.
func withBytes[T any](buffers *sync.Pool, codec *Codec[T], v T, f func(b []byte) error) error {
	buffer := buffers.Get().(*[]byte)
	defer buffers.Put(buffer)
	b, err := codec.Append((*buffer)[:0], v)
	if err != nil {
		return err
	}
	if len(b) > cap(*buffer) {
		*buffer = make([]byte, 0, len(b))
	}
	return f(b)
}

// codecOf returns codec. If it is nil, codecOf returns the codec of types that are their own bytes.
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
