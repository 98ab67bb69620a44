// Load: one load for all goroutines that miss a key at the same time (singleflight).
//
//	first to miss:  join --> load --> store, unless the key was written --> leave
//	others:         join --> wait ----------------------------> the first one's result
//
// A call with many keys joins all that it misses. It loads the keys that it was first to join, all
// at once, and leaves them. Only then does it wait for the other keys, so no two calls wait for each
// other. refresh.go loads older entries again.

package cache

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"sync/atomic"

	"github.com/freehold-go/freehold/internal/pin"
)

// GetOrLoad appends the value of key to dst. If there is none, it calls load, stores the Entry that
// load returns, and appends its value. An Entry with a TTL of 0 gets the TTL of the options.
// Goroutines that ask for the same key meanwhile wait for the same load. A value that cannot be
// stored is returned all the same.
//
// An error of load is returned to all waiting goroutines. The cache does not remember it, with one
// exception: if the error matches [ErrNotFound], GetOrLoad returns ErrNotFound without a load for
// the TTL of the Entry that came with it, or else for Options.Negative. If the ctx of a waiting
// goroutine is done, GetOrLoad returns its error to that goroutine. If the ctx of the loading one
// is done, another one loads.
//
// If the key is written or deleted during a load, the goroutines that already wait get the result,
// and it is not stored. Later calls load again.
//
// load runs in the goroutine of one caller, with its ctx, and without a lock. It may call any
// method but Close. A load that asks for its own key deadlocks until the ctx of that call is done.
// A load that ends after Close is not stored. If load panics, that caller panics, and the others
// load again.
//
// With Options.RefreshAfter, GetOrLoad returns an older value at once, and calls load in a
// goroutine of the cache, once for all callers. The ctx of load has the values of the caller's ctx,
// and not its deadline. Close cancels the load and waits for it. If load fails, the old value stays,
// and the first call after a second tries again. If the error matches ErrNotFound, the old value is
// deleted. If load panics in this goroutine, the program ends.
func (c *Cache) GetOrLoad(ctx context.Context, dst, key []byte, load func(ctx context.Context) (Entry, error)) ([]byte, error) {
	c.base.MustBeOpen(&kind, "GetOrLoad")
	dst, ok := c.Get(dst, key)
	if !ok {
		return c.appendMissing(ctx, dst, key, load)
	}
	if c.options.RefreshAfter > 0 {
		if h := c.seed.Bytes(key); c.isDue(h, key) {
			ld := loader{c: c, load: loadOne(load)}
			ld.refresh(ctx, []wanted{newWanted(h, 0, key)})
		}
	}
	return dst, nil
}

// appendMissing is GetOrLoad of a key that had no entry.
func (c *Cache) appendMissing(ctx context.Context, dst, key []byte, load func(ctx context.Context) (Entry, error)) ([]byte, error) {
	ld := loader{c: c, call: "cache.Cache.GetOrLoad", load: loadOne(load), use: func(_ int, e Entry) error {
		dst = append(dst, e.Value...)
		return nil
	}}
	err := ld.loadMissing(ctx, []wanted{newWanted(c.seed.Bytes(key), 0, key)})
	return dst, err
}

// GetOrLoadMany calls f with the index of each key and its entry, in no order, as [Cache.GetMany]
// does. It calls load at most once, with all keys that have no entry and that no other goroutine
// loads. It stores the entries that load returns, and waits for the other goroutines' loads. An
// entry that was loaded has only its Value.
//
// load must not change missing. It returns entries by key, without the keys that it does not find:
// f is not called for these, and the cache remembers for Options.Negative that they have no value.
// Entries of other keys are ignored.
//
// GetOrLoadMany returns an error of load after it has called f for all other keys. All else is as
// for [Cache.GetOrLoad]. If the ctx of another goroutine that loads some of the keys is done, load is
// called again for these. With Options.RefreshAfter, one goroutine loads all older entries.
func (c *Cache) GetOrLoadMany(ctx context.Context, keys [][]byte, load func(ctx context.Context, missing [][]byte) (map[string]Entry, error), f func(i int, e Entry)) error {
	c.base.MustBeOpen(&kind, "GetOrLoadMany")
	ld := loader{c: c, call: "cache.Cache.GetOrLoadMany", use: func(i int, e Entry) error {
		f(i, e)
		return nil
	}, load: func(ctx context.Context, mine []wanted) (result, error) {
		keys := make([][]byte, len(mine))
		for i := range mine {
			keys[i] = mine[i].key
		}
		found, err := load(ctx, keys)
		return func(w *wanted) (Entry, error) { return entryIn(found, string(w.key)) }, err
	}}
	for from := 0; from < len(keys); from += batchKeys {
		some := keys[from:min(from+batchKeys, len(keys))]
		hashes := c.prefetch(some)
		for i, key := range some {
			ld.get(hashes[i], from+i, key)
		}
	}
	return ld.loadMany(ctx)
}

// entryIn returns the entry of a key in the result of a load, or ErrNotFound.
func entryIn[K comparable, V any](found map[K]EntryOf[V], k K) (e EntryOf[V], err error) {
	e, ok := found[k]
	if !ok {
		err = ErrNotFound
	}
	return e, err
}

// A loader is a call of GetOrLoad or GetOrLoadMany.
type loader struct {
	c            *Cache
	call         string                     // the function that use calls, for debug modes
	use          func(i int, e Entry) error // is called with the entry of key i
	load         loadFunc
	missing, due []wanted
}

// A wanted is key i of a call that needs a load.
type wanted struct {
	i   int
	h   uint64 // the hash of key
	key []byte
	l   *loading
}

// newWanted returns key i of a call, with a copy of the caller's bytes.
func newWanted(h uint64, i int, key []byte) wanted {
	return wanted{i: i, h: h, key: bytes.Clone(key)}
}

// A loadFunc loads keys, and returns a function that gives the entry or the error of each. If it
// returns an error, no key was loaded.
type loadFunc func(ctx context.Context, mine []wanted) (result, error)

type result func(w *wanted) (Entry, error)

// loadOne returns the loadFunc of a call with one key.
func loadOne(load func(ctx context.Context) (Entry, error)) loadFunc {
	return func(ctx context.Context, _ []wanted) (result, error) {
		e, err := load(ctx)
		return func(*wanted) (Entry, error) { return e, err }, nil
	}
}

// get uses the entry of key i, whose hash is h. If there is none, get adds the key to missing. If
// the entry is due, get adds the key to due. It returns ErrNotFound if the cache remembers that
// there is no value.
func (ld *loader) get(h uint64, i int, key []byte) error {
	switch err := ld.c.lookUp(ld.call, h, key, func(e Entry) error { return ld.use(i, e) }, true); {
	case err == errMissing:
		ld.missing = append(ld.missing, newWanted(h, i, key))
	case err != nil:
		return err
	case ld.c.isDue(h, key):
		ld.due = append(ld.due, newWanted(h, i, key))
	}
	return nil
}

// loadAll loads the keys that are due or missing. It returns the error of loadMissing.
func (ld *loader) loadAll(ctx context.Context) error {
	ld.refresh(ctx, ld.due)
	return ld.loadMissing(ctx, ld.missing)
}

// loadMany is loadAll, and ignores keys that are not found.
func (ld *loader) loadMany(ctx context.Context) error {
	err := ld.loadAll(ctx)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// errMissing says that the cache has no item of a key.
var errMissing = errors.New("missing")

// lookUp calls f with the entry of key, whose hash is h. call is the name of f. It returns
// ErrNotFound if the cache remembers that there is no value. It returns errMissing if key has no
// live entry, or if f fails. If counts is set, Stats counts a hit if f succeeds, and else a miss.
func (c *Cache) lookUp(call string, h uint64, key []byte, f func(e Entry) error, counts bool) (err error) {
	s := c.shardOf(h)
	r := c.orFetch(s, s.find(h, key), h, key, counts)
	defer s.unpin(r)
	mine := &c.reads[pin.Stripe(stripeBits)]
	isLive, failed := r.isLive(&c.clock), false
	err = errMissing
	switch {
	case isLive:
		e := s.entryOf(r, c.accessTime())
		if c.copier != nil {
			c.copier.show(call, e, func(e Entry) { err = f(e) })
		} else {
			err = f(e)
		}
		if failed = err != nil; failed {
			err = errMissing
		}
	case r.it != nil && r.it.shape.isAbsent() && !r.it.hasExpired(&c.clock):
		err = ErrNotFound
	}
	switch {
	case !counts:
	case err == nil:
		mine.hits.Add(1)
		c.countHit(s, r)
		r.markRead(c.accessTime())
	default:
		mine.misses.Add(1)
		if failed {
			mine.undecodable.Add(1)
		}
	}
	return err
}

// loadMissing loads keys that had no entries, by ld.load or by other goroutines' loads. It calls
// ld.use with each value, in an Entry that has only a Value. If an entry was stored meanwhile and
// ld.use fails for it, a load replaces it. loadMissing returns the first error, but ErrNotFound only
// if there is no other.
func (ld *loader) loadMissing(ctx context.Context, todo []wanted) (err error) {
	note := func(e error) {
		if err == nil || e != nil && errors.Is(err, ErrNotFound) {
			err = e
		}
	}
	isMissing := func(w *wanted) bool { // another goroutine may have loaded it since
		e := ld.c.lookUp(ld.call, w.h, w.key, func(e Entry) error { return ld.use(w.i, e) }, false)
		if e != errMissing {
			note(e)
		}
		return e == errMissing
	}
	got := func(w *wanted) {
		e := w.l.err
		if e == nil {
			e = ld.use(w.i, Entry{Value: w.l.value})
		}
		note(e)
	}
	for {
		if todo = filter(todo, isMissing); len(todo) == 0 {
			return err
		}
		mine, others := ld.c.join(todo)
		ld.loadJoined(ctx, mine, isMissing, got)
		todo = todo[:0]
		for i := range others {
			w := &others[i]
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-w.l.done:
			}
			if w.l.again {
				todo = append(todo, *w)
			} else {
				got(w)
			}
		}
	}
}

// filter returns the keys that match.
func filter(all []wanted, match func(w *wanted) bool) (some []wanted) {
	for i := range all {
		if match(&all[i]) {
			some = append(some, all[i])
		}
	}
	return some
}

// join joins the loads of keys. The caller must load mine; other goroutines load others.
func (c *Cache) join(todo []wanted) (mine, others []wanted) {
	for _, w := range todo {
		var first bool
		if w.l, first = c.shardOf(w.h).loads.join(w.key); first {
			mine = append(mine, w)
		} else {
			others = append(others, w)
		}
	}
	return mine, others
}

// loadJoined loads the keys of mine that match, stores the results, and calls got with each. Then
// it leaves the loads of all of mine, which wakes the goroutines that wait for them.
func (ld *loader) loadJoined(ctx context.Context, mine []wanted, match func(w *wanted) bool, got func(w *wanted)) {
	c := ld.c
	defer func() {
		for i := range mine {
			c.shardOf(mine[i].h).loads.leave(mine[i].l)
		}
	}()
	left := filter(mine, match)
	if len(left) == 0 {
		return
	}
	c.loaded.all.Add(uint64(len(left)))
	var entryOf result
	var err error
	finish(func() { entryOf, err = ld.load(ctx, left) }, func() { c.loaded.failed.Add(uint64(len(left))) })
	for i := range left {
		w := &left[i]
		var e Entry
		failed := err
		if err == nil {
			e, failed = entryOf(w)
		}
		if failed != nil && !errors.Is(failed, ErrNotFound) {
			c.loaded.failed.Add(1)
		}
		c.storeLoaded(w, e, failed)
		w.l.value, w.l.err, w.l.again = bytes.Clone(e.Value), failed, failed != nil && ctx.Err() != nil
		got(w)
	}
}

// storeLoaded stores a loaded entry, unless its key was written since the load began. It ignores an
// entry that cannot be stored. If err matches ErrNotFound, it stores an absent item, with the TTL
// of e or else Options.Negative: the key has no value. If both are 0, it deletes the key's entry.
func (c *Cache) storeLoaded(w *wanted, e Entry, err error) {
	kind, asks := shape(0), false
	switch {
	case err == nil:
		asks = c.withTTL(&e)
	case errors.Is(err, ErrNotFound):
		e, kind = Entry{TTL: cmp.Or(e.TTL, c.options.Negative, -1)}, absent
	default:
		return
	}
	write := c.newWrite(w.h, w.key, &e, c.clock.expires(e.TTL))
	write.shape |= kind
	write.loading, write.asks = w.l, asks
	if !w.l.written.Load() { // else a huge entry would evict others for nothing
		c.storeOrDelete(&write)
		w.l.written.Store(true) // not before, or a caller that finds no entry yet loads again
	}
}

// loadCounts counts keys: see Stats.
type loadCounts struct{ all, failed, refreshes atomic.Uint64 }
