// Counters of each session, and their names in stats.

package memcached

import "sync/atomic"

// A counter is an index of counters. Stats computes misses from attempts and hits.
type counter int

const (
	cmdGet counter = iota
	cmdSet
	cmdFlush
	cmdTouch
	cmdMeta
	getHits
	deleteHits
	deleteMisses
	incrHits
	incrMisses
	decrHits
	decrMisses
	casHits
	casMisses
	casBadval
	touchHits
	storeTooLarge
	storeNoMemory
	bytesRead
	bytesWritten
	idleKicks
	slowKicks
	authCmds
	authErrors
	numCounters
)

var counterNames = [numCounters]string{
	"cmd_get", "cmd_set", "cmd_flush", "cmd_touch", "cmd_meta", "get_hits", "delete_hits", "delete_misses", "incr_hits",
	"incr_misses", "decr_hits", "decr_misses", "cas_hits", "cas_misses", "cas_badval", "touch_hits", "store_too_large",
	"store_no_memory", "bytes_read", "bytes_written", "idle_kicks", "slow_kicks", "auth_cmds", "auth_errors",
}

// counters are one session's. Its goroutine adds; any goroutine may load.
type counters [numCounters]atomic.Uint64

// count counts an attempt, and a hit if it was one.
func (s *session) count(hit bool, hits, attempts counter) {
	s.counts[attempts].Add(1)
	if hit {
		s.counts[hits].Add(1)
	}
}

// countEither counts yes if is, and no otherwise.
func (s *session) countEither(is bool, yes, no counter) {
	if !is {
		yes = no
	}
	s.counts[yes].Add(1)
}

// countCAS counts the result of a write that named a version.
func (s *session) countCAS(r result) {
	switch r {
	case stored:
		s.counts[casHits].Add(1)
	case exists:
		s.counts[casBadval].Add(1)
	case notFound:
		s.counts[casMisses].Add(1)
	}
}

// totals are sums of counters.
type totals [numCounters]uint64

func (t *totals) add(c *counters) {
	for i := range c {
		t[i] += c[i].Load()
	}
}

// since returns the difference to an earlier sum.
func (t *totals) since(before *totals) (d totals) {
	for i := range t {
		d[i] = t[i] - before[i]
	}
	return d
}
