// Load: one load for all who miss a key at the same time.

package cache

import (
	"context"
	"errors"
	"sync"
)

// GetOrLoad appends the value of key to dst. If there is none, it calls load, stores what that
// returns, with the TTL of the Entry, or of the options if that is 0, and appends it. Goroutines that
// ask for the same key meanwhile wait for the same load. What is too large to be stored is returned
// all the same.
//
// An error of load is returned to all who wait, and not remembered, except one that matches
// [ErrNotFound]: see Options.Negative. If ctx is done first, its error is returned to its own
// caller; the others go on, with a load of one of them. A key that is set or deleted during a load
// keeps that: the load's result is returned, and not stored.
//
// load runs in the goroutine of one caller, with its ctx, and without a lock. A panic of load is
// that caller's, and the others load again.
func (c *Cache) GetOrLoad(ctx context.Context, dst, key []byte, load func(ctx context.Context) (Entry, error)) ([]byte, error) {
	c.base.MustBeOpen(&kind, "GetOrLoad")
	for {
		if dst, ok := c.Get(dst, key); ok {
			return dst, nil
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
		if l.err == nil || !l.again {
			return append(dst, l.value...), l.err
		}
	}
}

// load calls load, and tells those who wait.
func (c *Cache) load(ctx context.Context, dst, key []byte, l *loading, load func(ctx context.Context) (Entry, error)) ([]byte, error) {
	l.again = true // if load panics
	l.err = errors.New("freehold: the load panicked")
	defer c.loads.leave(string(key), l)
	e, err := load(ctx)
	l.err = err
	l.again = err != nil && ctx.Err() != nil
	if err != nil {
		return dst, err
	}
	l.value = append([]byte(nil), e.Value...)
	if e.TTL == 0 {
		e.TTL = c.options.TTL
	}
	c.Add(key, e)
	return append(dst, l.value...), nil
}

// loads are those that are under way. The zero value has none.
type loads struct {
	mu  sync.Mutex // guards all
	all map[string]*loading
}

// A loading is one load. The fields are set before done is closed.
type loading struct {
	done  chan struct{}
	value []byte
	err   error
	again bool // those who wait load themselves
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
	return l, true
}

func (ls *loads) leave(key string, l *loading) {
	ls.mu.Lock()
	delete(ls.all, key)
	ls.mu.Unlock()
	close(l.done)
}
