// Evict: a cache at its limit frees blocks and tries again.

package budget

import "errors"

const (
	// evict is asked for 1/evictShare of the limit or more, so that one refused request frees
	// memory for many blocks.
	evictShare = 256
	// AllocOrEvict gives up when 1/evictMostShare of the limit was evicted in vain, or four times
	// the block's size if that is more.
	evictMostShare = 8
	// A call that evicts less counts as this many bytes, so the loop ends.
	evictLeast = 8 << 10
)

// AllocOrEvict is Alloc for a cache. If the account, or one above it, is full, it calls evict to
// free some of the cache's own blocks, and tries again. It gives up when evict returns 0, or when
// an eighth of the limit was evicted in vain, since blocks of mixed sizes fragment memory. For a
// block above a 32nd of the limit, it gives up after four times the block's size. The error is then
// the [FullError] of the last try. It does not call evict for a block of the limit's size or
// larger, which never fits, or if the system has no memory.
//
// evict gets the number of bytes to free, at least the block's size and a 256th of the limit, and
// returns the number that it has freed. AllocOrEvict calls it in the caller's goroutine, and holds
// no lock. So evict may use a cache that the caller has locked, and may allocate from the account
// with Alloc. If it is slow, only the caller waits. A panic of evict is the caller's. An evict that
// itself calls AllocOrEvict with nothing left to free recurses forever.
//
//	value, err := account.AllocOrEvict(len(v), 1, shard.evict) // shard is locked
//
// An account keeps no share of its limit for each shard of a cache, so the shards drift in size.
// The shard of a new block may be empty. Then its evict must go on to the other shards, with
// TryLock, as in BenchmarkCacheAtItsLimit.
//
// An account whose cache is at its limit refuses requests until evict has freed blocks. So its
// pressure is hard at times, and its functions of OnPressure are called. That is no cause for
// alarm. AllocOrEvict does not evict from caches of other accounts, since the caller does not hold
// their locks. OnPressure asks those.
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
	most := max(limit/evictMostShare, 4*size)
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
	a.h.TrimSpare() // its caches may hold the evicted blocks
	return a.h.Alloc(size, align, false)
}

func isFull(err error) bool {
	var full *FullError
	return errors.As(err, &full)
}
