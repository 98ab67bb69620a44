// Loads: one load for all who miss a key at the same time.
//
//	first who misses:   join --> load --> store, unless the key was written --> leave
//	others:             join --> wait ------------------------------------> the first one's result

package cache

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
)

// GetOrLoad appends the value of key to dst. If there is none, it calls load, stores what that
// returns, with the TTL of the Entry, or of the options if that is 0, and appends it. Goroutines that
// ask for the same key meanwhile wait for the same load. What is too large to be stored is returned
// all the same.
//
// An error of load is returned to all who wait, and not remembered, except one that matches
// [ErrNotFound]: see Options.Negative. If ctx is done first, its error is returned to its own
// caller; the others go on, with a load of one of them. A key that is written or deleted during a
// load keeps that: the load's result is returned, and not stored.
//
// load runs in the goroutine of one caller, with its ctx, and without a lock. A panic of load is
// that caller's, and the others load again.
func (c *Cache) GetOrLoad(ctx context.Context, dst, key []byte, load func(ctx context.Context) (Entry, error)) ([]byte, error) {
	c.base.MustBeOpen(&kind, "GetOrLoad")
	for {
		if dst, err := c.getOrAbsent(dst, key); err != errMissing {
			return dst, err
		}
		l, first := c.loads.join(string(key))
		if first {
			return c.load(ctx, dst, key, l, load)
		}
		select {
		case <-ctx.Done():
			return dst, ctx.Err()
		case <-l.done:
		}
		if !l.again {
			return append(dst, l.value...), l.err
		}
	}
}

// errMissing says that the cache knows nothing of a key.
var errMissing = errors.New("missing")

// getOrAbsent appends the value of key to dst. The error is ErrNotFound if the cache remembers that,
// or errMissing.
func (c *Cache) getOrAbsent(dst, key []byte) ([]byte, error) {
	if dst, ok := c.Get(dst, key); ok {
		return dst, nil
	}
	if c.options.Negative > 0 {
		h := c.seed.Bytes(key)
		r := c.shardOf(h).find(h, key)
		defer r.release()
		if r.it != nil && r.it.shape.isAbsent() && !r.it.hasExpired(&c.clock) {
			return dst, ErrNotFound
		}
	}
	return dst, errMissing
}

// load calls load as the first, and tells those who wait.
func (c *Cache) load(ctx context.Context, dst, key []byte, l *loading, load func(ctx context.Context) (Entry, error)) ([]byte, error) {
	l.again = true // if load panics
	defer c.loads.leave(string(key), l)
	dst, err := c.getOrAbsent(dst, key) // another one may have loaded since
	if err != errMissing {
		return dst, err
	}
	e, err := load(ctx)
	l.err, l.again = err, err != nil && ctx.Err() != nil
	switch {
	case err == nil:
		l.value = append([]byte(nil), e.Value...)
		if e.TTL == 0 {
			e.TTL = c.options.TTL
		}
		c.storeLoaded(key, l, &e, false)
	case errors.Is(err, ErrNotFound) && c.options.Negative > 0:
		c.storeLoaded(key, l, &Entry{TTL: c.options.Negative}, true)
	}
	return append(dst, l.value...), err
}

// storeLoaded stores what was loaded, unless key was written since the load began. What cannot be
// stored is not.
func (c *Cache) storeLoaded(key []byte, l *loading, e *Entry, absent bool) {
	h := c.seed.Bytes(key)
	s := c.shardOf(h)
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.written.Load() {
		return
	}
	old, found := s.current(h, key)
	if !found {
		s.store(h, key, e, c.clock.expires(e.TTL), absent, old)
	}
}

// loads are those that are under way. The zero value has none.
type loads struct {
	mu  sync.Mutex // guards all
	all map[string]*loading
	n   atomic.Int64 // its length
}

// A loading is one load. written is stored before its key's shard is written, and loaded under the shard's
// lock. The other fields are set before done is closed.
type loading struct {
	written atomic.Bool
	done    chan struct{}
	value   []byte
	err     error
	again   bool // those who wait load themselves
}

// join returns the load of key that is under way, or a new one, which the caller is the first of.
func (ls *loads) join(key string) (l *loading, first bool) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if l := ls.all[key]; l != nil {
		return l, false
	}
	if ls.all == nil {
		ls.all = map[string]*loading{}
	}
	l = &loading{done: make(chan struct{})}
	ls.all[key] = l
	ls.n.Store(int64(len(ls.all)))
	return l, true
}

func (ls *loads) leave(key string, l *loading) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	delete(ls.all, key)
	ls.n.Store(int64(len(ls.all)))
	close(l.done)
}

// written notes that key was written. The caller has the lock of its shard.
func (ls *loads) written(key []byte) {
	if ls.n.Load() == 0 {
		return
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if l := ls.all[string(key)]; l != nil {
		l.written.Store(true)
	}
}

// cleared notes that all keys are about to be deleted.
func (ls *loads) cleared() {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, l := range ls.all {
		l.written.Store(true)
	}
}
