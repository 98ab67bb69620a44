// Loads: one load for all goroutines that miss a key at the same time.
//
//	first who misses:  join --> load --> store, unless the key was written --> leave
//	others:            join --> wait ----------------------------> the first one's result

package cache

import (
	"context"
	"errors"

	"github.com/freehold-go/freehold/internal/pin"
)

// GetOrLoad appends the value of key to dst. If there is none, it calls load, stores the Entry that
// load returns, and appends its value. An Entry with a TTL of 0 gets the TTL of the options.
// Goroutines that ask for the same key meanwhile wait for the same load. A value that is too large
// to be stored is returned all the same.
//
// An error of load is returned to all waiting goroutines. The cache does not remember it, unless it
// matches [ErrNotFound]: see Options.Negative. If the ctx of a waiting goroutine is done, GetOrLoad
// returns its error to that goroutine. If the ctx of the loading one is done, another one loads. If
// the key is written or deleted during a load, the result is returned, and not stored.
//
// load runs in the goroutine of one caller, with its ctx, and without a lock. If load panics, that
// caller panics, and the others load again.
func (c *Cache) GetOrLoad(ctx context.Context, dst, key []byte, load func(ctx context.Context) (Entry, error)) ([]byte, error) {
	c.base.MustBeOpen(&kind, "GetOrLoad")
	if dst, ok := c.Get(dst, key); ok {
		return dst, nil
	}
	if c.options.Negative > 0 && c.isAbsent(key) {
		return dst, ErrNotFound
	}
	return c.appendMissing(ctx, dst, key, load)
}

// appendMissing is GetOrLoad of a key that had no entry.
func (c *Cache) appendMissing(ctx context.Context, dst, key []byte, load func(ctx context.Context) (Entry, error)) ([]byte, error) {
	err := c.loadMissing(ctx, key, func(e Entry) error {
		dst = append(dst, e.Value...)
		return nil
	}, load)
	return dst, err
}

// errMissing says that the cache has no item of a key.
var errMissing = errors.New("missing")

// isAbsent reports whether the cache remembers that key has no value.
func (c *Cache) isAbsent(key []byte) bool {
	h := c.seed.Bytes(key)
	r := c.shardOf(h).find(h, key)
	defer r.unpin()
	return r.it != nil && r.it.shape.isAbsent() && !r.it.hasExpired(&c.clock)
}

// lookUp calls f with the entry of key, whose hash is h. It returns ErrNotFound if the cache remembers that there is
// no value. It returns errMissing if key has no live entry, or if f fails. If f fails, undecodable
// is the version of the entry. If counts is set, Stats counts a hit if f succeeds, and else a miss.
func (c *Cache) lookUp(h uint64, key []byte, f func(e Entry) error, counts bool) (undecodable uint64, err error) {
	s := c.shardOf(h)
	r := s.find(h, key)
	defer func() { r.unpin() }()
	mine := &c.reads[pin.Stripe(stripeBits)]
	err = errMissing
	switch {
	case r.isLive(&c.clock):
		e := s.entryOf(r, c.accessTime())
		if c.copier != nil {
			c.copier.show("cache.Codec.Decode", e, func(e Entry) { err = f(e) })
		} else {
			err = f(e)
		}
		if err != nil {
			undecodable, err = e.Version, errMissing
		}
	case r.it != nil && !r.it.hasExpired(&c.clock):
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
		if undecodable != 0 {
			mine.undecodable.Add(1)
		}
	}
	return undecodable, err
}

// loadMissing gets the value of a key that had no entry, and calls use with it, in an Entry without
// the rest. The value is from load, or from another goroutine's load. If an entry is stored meanwhile
// and use fails for its
// value, a load replaces it.
func (c *Cache) loadMissing(ctx context.Context, key []byte, use func(e Entry) error, load func(ctx context.Context) (Entry, error)) error {
	h := c.seed.Bytes(key)
	loads := &c.shardOf(h).loads
	for {
		l, first := loads.join(key)
		if first {
			return c.loadFirst(ctx, h, l, use, load)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-l.done:
		}
		switch {
		case l.again:
			if _, err := c.lookUp(h, key, use, false); err != errMissing {
				return err
			}
		case l.err != nil:
			return l.err
		default:
			return use(Entry{Value: l.value})
		}
	}
}

// loadFirst calls load, stores the result, and ends the waits of other goroutines.
func (c *Cache) loadFirst(ctx context.Context, h uint64, l *loading, use func(e Entry) error, load func(ctx context.Context) (Entry, error)) error {
	l.again = true // it stays so if load panics
	key := []byte(l.key)
	s := c.shardOf(h)
	defer s.loads.leave(l)
	undecodable, err := c.lookUp(h, key, use, false) // another goroutine may have loaded since
	if err != errMissing {
		return err
	}
	e, err := load(ctx)
	l.err, l.again = err, err != nil && ctx.Err() != nil
	switch {
	case err == nil:
		l.value = append([]byte(nil), e.Value...)
		c.withTTL(&e)
		s.storeLoaded(l, c.newWrite(h, key, &e, c.clock.expires(e.TTL)), undecodable)
		return use(Entry{Value: l.value})
	case errors.Is(err, ErrNotFound) && c.options.Negative > 0:
		w := c.newWrite(h, key, &Entry{TTL: c.options.Negative}, c.clock.expires(c.options.Negative))
		w.shape |= absent
		s.storeLoaded(l, w, undecodable)
	}
	return err
}

// storeLoaded stores a loaded entry, unless its key was written since the load began. It ignores an
// entry that cannot be stored.
func (s *shard) storeLoaded(l *loading, w write, undecodable uint64) {
	s.lockFor(w.bytes())
	defer s.unlock()
	if l.written.Load() {
		return
	}
	old, found := s.current(w.h, w.key)
	if !found || s.version(old.w, old.it) == undecodable {
		s.store(&w, old)
	}
}
