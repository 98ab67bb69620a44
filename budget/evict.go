// Evict: how a cache goes on at its limit.

package budget

import "errors"

const (
	// A full account asks for this part of its limit at once, so that most blocks come from
	// those that were freed, and few requests are refused.
	evictShare = 256
	// It gives up when this part of the limit was evicted in vain.
	evictMost = 8
	// Evicting less than a page each time counts as a page.
	evictLeast = 8 << 10
)

// AllocOrEvict is Alloc for a cache. If the account, or one above it, is full, it calls evict to
// free some of the cache's own blocks, and tries again, until the block can be had, or evict
// returns 0, or an eighth of the limit was evicted in vain: blocks of mixed sizes fragment
// memory. Then the error is the [FullError] of the last try. Nothing is evicted for a block that
// is as large as the limit or larger, or if the system has no memory.
//
// evict is told how many bytes to free, at least the block's and a 256th of the limit, and
// returns how many it has freed. It runs in the call of AllocOrEvict and with no lock held: it
// may be a method of the cache that the caller has locked, it may allocate from the account with
// Alloc, and it may take its time, for which only the caller waits. A panic of evict is the
// caller's. An evict that itself calls AllocOrEvict with nothing left to free recurses forever.
//
//	value, err := account.AllocOrEvict(len(v), 1, shard.evict) // shard is locked
//
// A cache of several shards in one account needs an evict that goes on to other shards when its
// own has nothing left, with TryLock, since the account does not keep a share for each: shards
// drift, and a new block's may be the empty one. BenchmarkCacheAtItsLimit has such a cache.
//
// An account whose cache is at its limit refuses requests until evict has freed, so its pressure is
// hard at times, and its functions of OnPressure are called. That is no cause for an alarm.
//
// The caches of other accounts are asked by OnPressure, since their locks are not the caller's.
func (a *Account) AllocOrEvict(size, align int, evict func(bytes int) (freed int)) ([]byte, error) {
	b, err := a.h.Alloc(size, align, false)
	if err == nil {
		return b, nil
	}
	return a.evictFor(size, align, evict, err)
}

// evictFor is AllocOrEvict after an error.
func (a *Account) evictFor(size, align int, evict func(bytes int) int, err error) ([]byte, error) {
	limit := payer{a}.Limit()
	ask := max(size, limit/evictShare)
	most := max(limit/evictMost, 4*size)
	sum := 0
	for isFull(err) && size < limit && sum < most {
		freed := evict(ask)
		if freed <= 0 {
			break
		}
		a.evicted.Add(int64(freed))
		sum += min(max(freed, evictLeast), most) // no overflow
		ask = min(2*ask, most)
		var b []byte
		if b, err = a.h.Alloc(size, align, false); err == nil {
			return b, nil
		}
	}
	if sum == 0 || !isFull(err) {
		return nil, err
	}
	a.h.TrimSpare() // its caches may have what was evicted
	return a.h.Alloc(size, align, false)
}

func isFull(err error) bool {
	var full *FullError
	return errors.As(err, &full)
}
