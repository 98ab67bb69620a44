// Of: a cache of Go types, over a Cache of bytes.
//
//	K  --keys-->    key's bytes
//	V  --values-->  value's bytes      and back
//
// codec.go has the codecs.

package cache

import (
	"cmp"
	"context"
	"iter"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/container"
	"github.com/freehold-go/freehold/internal/hash"
)

// Of is a cache of keys and values of Go types. It embeds a [Cache], and so has the calls of that
// without a key, such as Resize, Snapshot and Stats. A call with a key does the same as its namesake
// in Cache, and also returns the errors of the codecs. Its values are decoded copies, which the
// caller may keep. An entry whose value cannot be decoded counts as missing: Stats counts a read of
// it in Misses and in Undecodable. A key that cannot be encoded has no entry.
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
	// Decode in Values. All, Hottest, Coldest, OnEvict and Expiry decode keys: they panic, and
	// NewOf does, if Keys has no Decode.
	Keys   *Codec[K]
	Values *Codec[V]

	// OnEvict is Options.OnEvict with types. It is not called for an entry that cannot be decoded.
	// NewOf panics if both are set.
	OnEvict func(k K, e EntryOf[V], why Reason)

	// Expiry is Options.Expiry with types. It decodes the key and the value of each entry that is
	// stored or read. For an entry that cannot be decoded it is not called, and e.TTL is kept.
	// NewOf panics if both are set, or if Keys has no Decode.
	Expiry func(k K, e EntryOf[V], read bool) time.Duration
}

// decodeCall is the name of the function that lookUp calls for an Of.
const decodeCall = "cache.Codec.Decode"

var ofKind = container.Kind{Type: "cache.Of", Maker: "cache.NewOf", Is: "the cache is", Shared: true}

// NewOf returns an empty cache: see [New].
func NewOf[K comparable, V any](parent freehold.Allocator, o *OfOptions[K, V]) *Of[K, V] {
	if o == nil {
		arg.Panicf("cache.NewOf", "options are nil, and MaxBytes is required")
	}
	c := &Of[K, V]{keys: codecOf("Keys", o.Keys), values: codecOf("Values", o.Values)}
	if o.Keys != nil && o.Keys.Append == nil || o.Values != nil && (o.Values.Append == nil || o.Values.Decode == nil) {
		arg.Panicf("cache.NewOf", "a Codec needs Append, and one of values Decode too")
	}
	if t := reflect.TypeFor[K](); o.Keys == nil && t.Kind() != reflect.String && !hash.IsPlain(t) {
		arg.Panicf("cache.NewOf", "a K of %v, with padding or floats, needs a Codec in OfOptions.Keys", t)
	}
	options := o.Options
	if o.OnEvict != nil {
		if options.OnEvict != nil || c.keys.Decode == nil {
			arg.Panicf("cache.NewOf", "OnEvict needs Keys with Decode, and Options without OnEvict")
		}
		options.OnEvict = c.decodeEvicted(o.OnEvict)
	}
	if o.Expiry != nil {
		if options.Expiry != nil || c.keys.Decode == nil {
			arg.Panicf("cache.NewOf", "Expiry needs Keys with Decode, and Options without Expiry")
		}
		options.Expiry = func(key []byte, e Entry, read bool) time.Duration {
			if k, typed, ok := c.decode(key, e); ok {
				return o.Expiry(k, typed, read)
			}
			return e.TTL
		}
	}
	c.buffers.New = func() any { return new([]byte) }
	c.Cache.init(parent, &options)
	return c
}

// Get returns the value of k, and whether there is one.
func (c *Of[K, V]) Get(k K) (v V, ok bool) {
	e, ok := c.read("Get", k, true)
	return e.Value, ok
}

// View calls f with the entry of k, if there is one, and reports whether there is. The entry is a
// copy. f may call any method, and may take its time, since it holds nothing of the cache.
func (c *Of[K, V]) View(k K, f func(e EntryOf[V])) bool {
	e, ok := c.read("View", k, true)
	if ok {
		f(e)
	}
	return ok
}

// Peek is View without counting as a read: see [Cache.Peek].
func (c *Of[K, V]) Peek(k K, f func(e EntryOf[V])) bool {
	e, ok := c.read("Peek", k, false)
	if ok {
		f(e)
	}
	return ok
}

// read returns the entry of k, and whether there is one. counts says whether it counts as a read.
func (c *Of[K, V]) read(call string, k K, counts bool) (e EntryOf[V], ok bool) {
	c.base.MustBeOpen(&ofKind, call)
	c.withKey(k, func(key []byte) error {
		err := c.lookUp(decodeCall, c.seed.Bytes(key), key, c.decodeTo(&e), counts)
		ok = err == nil
		return nil
	})
	return e, ok
}

// GetMany calls f with the index of each key that is found, and its entry. It costs less than a Get
// for each key: see [Cache.GetMany].
func (c *Of[K, V]) GetMany(keys []K, f func(i int, e EntryOf[V])) {
	c.base.MustBeOpen(&ofKind, "GetMany")
	c.eachKey(keys, func(i int, h uint64, key []byte, err error) {
		var e EntryOf[V]
		if err == nil && c.lookUp(decodeCall, h, key, c.decodeTo(&e), true) == nil {
			f(i, e)
		}
	})
}

// Prefetch is [Cache.Prefetch] of the keys that can be encoded.
func (c *Of[K, V]) Prefetch(keys []K) {
	c.base.MustBeOpen(&ofKind, "Prefetch")
	c.eachKey(keys, func(int, uint64, []byte, error) {}) // prefetches
}

// eachKey calls f with the index of each key, its hash and its bytes, or the error of the codec.
// Keys are prefetched in batches.
func (c *Of[K, V]) eachKey(keys []K, f func(i int, h uint64, key []byte, err error)) {
	buffer := c.buffers.Get().(*[]byte)
	defer c.buffers.Put(buffer)
	for from := 0; from < len(keys); from += batchKeys {
		var batch [batchKeys][]byte
		var errs [batchKeys]error
		some := keys[from:min(from+batchKeys, len(keys))]
		*buffer = c.encode(some, (*buffer)[:0], &batch, &errs)
		hashes := c.prefetch(batch[:len(some)])
		for i := range some {
			f(from+i, hashes[i], batch[i], errs[i])
		}
	}
}

// encode appends the bytes of keys to b, and returns it. It sets batch to the bytes of each, and
// errs to the errors.
func (c *Of[K, V]) encode(keys []K, b []byte, batch *[batchKeys][]byte, errs *[batchKeys]error) []byte {
	var ends [batchKeys]int
	for i, k := range keys {
		var key []byte
		if key, errs[i] = c.keys.Append(b[len(b):], k); errs[i] == nil {
			b = append(b, key...) // onto itself, unless the codec returns other memory
		}
		ends[i] = len(b)
	}
	start := 0
	for i := range keys {
		batch[i], start = b[start:ends[i]], ends[i]
	}
	return b
}

// All returns an iterator over the keys and entries, in no order. It leaves out entries that cannot
// be decoded. All else is as for [Cache.All]. It panics if OfOptions.Keys has no Decode.
func (c *Of[K, V]) All() iter.Seq2[K, EntryOf[V]] { return c.decoded("All", (*Cache).All) }

// Hottest is All in the order of [Cache.Hottest].
func (c *Of[K, V]) Hottest() iter.Seq2[K, EntryOf[V]] { return c.decoded("Hottest", (*Cache).Hottest) }

// Coldest is All in the order of [Cache.Coldest].
func (c *Of[K, V]) Coldest() iter.Seq2[K, EntryOf[V]] { return c.decoded("Coldest", (*Cache).Coldest) }

// decoded returns an iterator of the cache of bytes as an iterator of types.
func (c *Of[K, V]) decoded(call string, all func(*Cache) iter.Seq2[[]byte, Entry]) iter.Seq2[K, EntryOf[V]] {
	return func(yield func(K, EntryOf[V]) bool) {
		c.base.MustBeOpen(&ofKind, call)
		if c.keys.Decode == nil {
			arg.Panicf("cache.Of."+call, "Keys has no Decode")
		}
		for key, e := range all(&c.Cache) {
			if k, v, ok := c.decode(key, e); ok && !yield(k, v) {
				return
			}
		}
	}
}

// Set stores v for k, with the TTL of the options.
func (c *Of[K, V]) Set(k K, v V) error {
	_, err := c.write("Set", k, EntryOf[V]{Value: v}, c.Cache.Put)
	return err
}

// SetTTL is Set with the entry's own TTL. With 0 the entry does not expire.
func (c *Of[K, V]) SetTTL(k K, v V, ttl time.Duration) error {
	_, err := c.write("SetTTL", k, EntryOf[V]{Value: v}, func(key []byte, e Entry) (uint64, error) {
		return 0, c.Cache.SetTTL(key, e.Value, ttl)
	})
	return err
}

// Put is Set of an entry, with its own TTL and flags. It returns the entry's version.
func (c *Of[K, V]) Put(k K, e EntryOf[V]) (version uint64, err error) {
	return c.write("Put", k, e, c.Cache.Put)
}

// Add stores e if k has no entry, and reports whether it did. An entry that cannot be decoded
// stays: Update replaces it.
func (c *Of[K, V]) Add(k K, e EntryOf[V]) (added bool, err error) {
	return c.writeIf("Add", k, e, c.Cache.Add)
}

// Replace stores e if k has an entry, also one that cannot be decoded, and reports whether it did.
func (c *Of[K, V]) Replace(k K, e EntryOf[V]) (replaced bool, err error) {
	return c.writeIf("Replace", k, e, c.Cache.Replace)
}

// CompareAndSet stores e if the entry of k has the given version, and reports whether it did.
func (c *Of[K, V]) CompareAndSet(k K, version uint64, e EntryOf[V]) (set bool, err error) {
	return c.writeIf("CompareAndSet", k, e, func(key []byte, e Entry) (bool, error) {
		return c.Cache.CompareAndSet(key, version, e)
	})
}

func (c *Of[K, V]) write(call string, k K, e EntryOf[V], write func(key []byte, e Entry) (uint64, error)) (version uint64, err error) {
	c.base.MustBeOpen(&ofKind, call)
	err = c.withBoth(k, e.Value, func(key, value []byte) error {
		version, err = write(key, withValue(&e, value))
		return err
	})
	return version, err
}

func (c *Of[K, V]) writeIf(call string, k K, e EntryOf[V], write func(key []byte, e Entry) (bool, error)) (done bool, err error) {
	_, err = c.write(call, k, e, func(key []byte, e Entry) (uint64, error) {
		done, err = write(key, e)
		return 0, err
	})
	return done, err
}

// Update calls f with the entry of k, or with an empty one if there is none, and does the [Change]
// that f returns: see [Cache.Update]. f and the codec of values run under the lock of a shard. If
// that codec fails, Update changes nothing.
func (c *Of[K, V]) Update(k K, f func(e *EntryOf[V], found bool) Change) (version uint64, err error) {
	c.base.MustBeOpen(&ofKind, "Update")
	err = c.withKey(k, func(key []byte) error {
		buffer := c.buffers.Get().(*[]byte)
		defer c.buffers.Put(buffer)
		var failed error
		version, err = c.Cache.Update(key, func(e *Entry, found bool) (change Change) {
			change, failed = c.change(e, found, f, (*buffer)[:0])
			return change
		})
		if failed != nil {
			return failed
		}
		return err
	})
	return version, err
}

// change decodes e, calls f with the result, and encodes it. buffer is for the bytes of the value.
func (c *Of[K, V]) change(e *Entry, found bool, f func(e *EntryOf[V], found bool) Change, buffer []byte) (change Change, err error) {
	var typed EntryOf[V]
	decoded := found && c.decodeTo(&typed)(*e) == nil
	switch change = f(&typed, decoded); {
	case change == Store:
		if e.Value, err = c.values.Append(buffer, typed.Value); err != nil {
			return Keep, err
		}
	case !decoded && change != Remove:
		return Keep, nil
	}
	if found && !decoded && typed.TTL == 0 {
		typed.TTL = c.options.TTL // not that of the entry that was not decoded
	}
	*e = withValue(&typed, e.Value)
	return change, nil
}

// Touch gives the entry of k another TTL, as for SetTTL, and reports whether there is one, also one
// that cannot be decoded.
func (c *Of[K, V]) Touch(k K, ttl time.Duration) (found bool) {
	return c.onKey("Touch", k, func(key []byte) bool { return c.Cache.Touch(key, ttl) })
}

// Delete deletes the entry of k, and reports whether there was one, also one that cannot be
// decoded.
func (c *Of[K, V]) Delete(k K) (found bool) { return c.onKey("Delete", k, c.Cache.Delete) }

func (c *Of[K, V]) onKey(call string, k K, f func(key []byte) bool) (done bool) {
	c.base.MustBeOpen(&ofKind, call)
	c.withKey(k, func(key []byte) error {
		done = f(key)
		return nil
	})
	return done
}

// GetOrLoad returns the value of k. If there is none, or it cannot be decoded, it calls load once
// for all goroutines that wait, and stores the result: see [Cache.GetOrLoad]. Each caller decodes
// the bytes of the loaded value, and gets the result or the error of Decode.
func (c *Of[K, V]) GetOrLoad(ctx context.Context, k K, load func(ctx context.Context) (EntryOf[V], error)) (v V, err error) {
	c.base.MustBeOpen(&ofKind, "GetOrLoad")
	var got EntryOf[V]
	decode := c.decodeTo(&got)
	err = c.withKey(k, func(key []byte) error {
		ld := loader{c: &c.Cache, call: decodeCall, use: func(_ int, e Entry) error { return decode(e) }}
		ld.load = loadOne(func(ctx context.Context) (Entry, error) { return c.encoded(load(ctx)) })
		if err := ld.get(c.seed.Bytes(key), 0, key); err != nil {
			return err
		}
		return ld.loadAll(ctx)
	})
	return got.Value, err
}

// GetOrLoadMany calls f with the index of each key and its entry, in no order. It calls load for
// the keys without an entry: see [Cache.GetOrLoadMany]. If a key cannot be encoded, or a loaded
// value cannot be encoded and decoded, GetOrLoadMany returns the error once f was called for the
// others.
func (c *Of[K, V]) GetOrLoadMany(ctx context.Context, keys []K, load func(ctx context.Context, missing []K) (map[K]EntryOf[V], error), f func(i int, e EntryOf[V])) error {
	c.base.MustBeOpen(&ofKind, "GetOrLoadMany")
	keys = slices.Clone(keys) // load may run when GetOrLoadMany has returned
	ld := loader{c: &c.Cache, call: decodeCall, use: func(i int, e Entry) error {
		var typed EntryOf[V]
		err := c.decodeTo(&typed)(e)
		if err == nil {
			f(i, typed)
		}
		return err
	}, load: func(ctx context.Context, mine []wanted) (result, error) {
		some := make([]K, len(mine))
		for i := range mine {
			some[i] = keys[mine[i].i]
		}
		found, err := load(ctx, some)
		return func(w *wanted) (Entry, error) { return c.encoded(entryIn(found, keys[w.i])) }, err
	}}
	var failed error
	c.eachKey(keys, func(i int, h uint64, key []byte, err error) {
		if err == nil {
			ld.get(h, i, key)
		} else if failed == nil {
			failed = err
		}
	})
	return cmp.Or(failed, ld.loadMany(ctx))
}

// encoded returns a loaded entry with the bytes of its value.
func (c *Of[K, V]) encoded(e EntryOf[V], err error) (Entry, error) {
	var value []byte
	if err == nil {
		value, err = c.values.Append(nil, e.Value)
	}
	return withValue(&e, value), err
}

// decodeTo returns a function that decodes an entry to *typed. If that fails, *typed is unchanged.
func (c *Of[K, V]) decodeTo(typed *EntryOf[V]) func(e Entry) error {
	return func(e Entry) error {
		v, err := c.values.Decode(e.Value)
		if err == nil {
			*typed = withValue(&e, v)
		}
		return err
	}
}

// decode decodes a key and its entry, and reports whether it could.
func (c *Of[K, V]) decode(key []byte, e Entry) (k K, typed EntryOf[V], ok bool) {
	k, err := c.keys.Decode(key)
	if err == nil {
		err = c.decodeTo(&typed)(e)
	}
	return k, typed, err == nil
}

// decodeEvicted returns f as Options.OnEvict.
func (c *Of[K, V]) decodeEvicted(f func(k K, e EntryOf[V], why Reason)) func(key []byte, e Entry, why Reason) {
	return func(key []byte, e Entry, why Reason) {
		if k, typed, ok := c.decode(key, e); ok {
			f(k, typed, why)
		}
	}
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

// withBytes calls f with the bytes of v. The codec gets a buffer to append to. If the bytes are
// larger than the buffer, a new buffer of their size replaces it. The bytes themselves are not kept,
// since they may be the codec's memory.
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
