// Writes: storage and arithmetic, for classic and meta commands.

package memcached

import (
	"cmp"
	"encoding/binary"
	"strconv"
	"time"

	"github.com/freehold-go/freehold/cache"
)

// Modes of a write. All but casMode are tokens of the flag M of ms.
const (
	setMode     = 'S'
	addMode     = 'E'
	replaceMode = 'R'
	appendMode  = 'A'
	prependMode = 'P'
	casMode     = 'C'
)

// Bits of an entry's flags beside the client's. md or ms marks an entry as stale. won says that a
// client has won the right to fetch it anew. packed says that its value ends with a version that a
// client has chosen: see pack.
const (
	won    = 1 << 32
	stale  = 1 << 33
	packed = 1 << 34
)

const versionBytes = 8

// pack makes e an entry of key whose version is chosen, the number of a flag E. The version follows
// the value in the cache:
//
//	| value | version 8 B |
//
// 0 is none, and leaves e as it is. isJoined says that the value is in the room that join has
// returned. The new value is valid until the next reply.
func (s *session) pack(key []byte, e *cache.Entry, chosen uint64, isJoined bool) result {
	if chosen == 0 {
		return stored
	}
	value := e.Value
	if !isJoined {
		room, r := s.join(key, len(value))
		if r != stored {
			return r
		}
		value = append(room, value...)
	}
	e.Value = binary.LittleEndian.AppendUint64(value, chosen)
	e.Flags |= packed
	return stored
}

// unpack undoes pack: e then has the value and the version of the client.
func unpack(e *cache.Entry) {
	if e.Flags&packed == 0 {
		return
	}
	n := len(e.Value) - versionBytes
	e.Value, e.Version = e.Value[:n], binary.LittleEndian.Uint64(e.Value[n:])
	e.Flags &^= packed
}

// A result is how a write ended.
type result int

const (
	stored result = iota
	notStored
	exists
	notFound
	refused // as too large
	full
	notNumber
)

var (
	classicReplies = [...]string{"STORED", "NOT_STORED", "EXISTS", "NOT_FOUND", tooLarge, outOfMemory, noNumber}
	metaReplies    = [...]string{"HD", "NS", "EX", "NF", tooLarge, outOfMemory, noNumber}
)

const noNumber = "CLIENT_ERROR cannot increment or decrement non-numeric value"

// A write is a storage command.
type write struct {
	key, value []byte
	mode       byte
	flags      uint64
	ttl        time.Duration
	cas        uint64 // the version that the entry must have, if hasCAS
	hasCAS     bool
	stale      bool // if cas is too low, the value is stored as stale
	vivify     bool // append and prepend add a missing entry, with fresh as its TTL
	fresh      time.Duration
	chosen     uint64 // the version that the entry gets; 0 is the next one

	result cache.Entry // the stored entry, with its version
}

// write runs w.
func (s *session) write(w *write) result {
	s.tellFetchBefore(w.key)
	w.result = cache.Entry{Value: w.value, Flags: w.flags, TTL: w.ttl}
	r, version := s.put(w)
	w.result.Version = version
	s.tellStore(w.key, r, storeNames[w.mode], left(&w.result), len(w.result.Value))
	return r
}

// put is write without watchers.
func (s *session) put(w *write) (result, uint64) {
	s.counts[cmdSet].Add(1)
	if w.mode == setMode && !w.hasCAS && w.chosen == 0 {
		version, err := s.cache.Put(w.key, cache.Entry{Value: w.value, Flags: w.flags, TTL: w.ttl})
		return s.stored(stored, version, err)
	}
	r := stored
	version, err := s.update(w.key, func(e *cache.Entry, found bool) cache.Change {
		if r = w.check(e, found); r == stored {
			r = s.apply(w, e, found)
		}
		if r == stored {
			r = s.pack(w.key, e, w.chosen, found && w.joins())
		}
		if r != stored {
			return cache.Keep
		}
		return cache.Store
	})
	if w.hasCAS {
		s.countCAS(r)
	}
	return s.stored(r, cmp.Or(w.chosen, version), err)
}

// update changes an entry by f, and once more if join has found no room. It may wait.
func (s *session) update(key []byte, f func(e *cache.Entry, found bool) cache.Change) (version uint64, err error) {
	for more := true; more; more = s.short > 0 && s.makeRoom() {
		version, err = s.cache.Update(key, func(e *cache.Entry, found bool) cache.Change {
			s.short = 0 // of an earlier call
			unpack(e)
			return f(e, found)
		})
	}
	return version, err
}

// stored returns the result of a write that r has allowed, after the error of the cache.
func (s *session) stored(r result, version uint64, err error) (result, uint64) {
	switch {
	case err == nil && r == stored:
		return r, version
	case err == nil:
		return r, 0
	}
	r = failed(err)
	s.countEither(r == refused, storeTooLarge, storeNoMemory)
	return r, 0
}

// check returns stored if the current entry allows w, and otherwise the result of w.
func (w *write) check(e *cache.Entry, found bool) result {
	switch {
	case w.mode == setMode && !w.hasCAS, !found && (w.mode == addMode || w.joins() && w.vivify):
		return stored
	case !found && w.hasCAS && !w.joins():
		return notFound
	case found == (w.mode == addMode):
		return notStored
	case w.hasCAS && e.Version != w.cas && !(w.stale && w.cas < e.Version):
		return exists
	}
	return stored
}

// joins reports whether w extends the current value.
func (w *write) joins() bool { return w.mode == appendMode || w.mode == prependMode }

// left returns the seconds until an entry expires, rounded down, or -1 if it does not.
func left(e *cache.Entry) int64 {
	if e.TTL == 0 {
		return -1
	}
	return max(seconds(e.TTL), 0)
}

// apply changes e to the entry that w stores.
func (s *session) apply(w *write, e *cache.Entry, found bool) result {
	switch {
	case w.joins() && found:
		first, second := e.Value, w.value
		if w.mode == prependMode {
			first, second = second, first
		}
		joined, r := s.join(w.key, len(first)+len(second))
		if r != stored {
			return r
		}
		e.Value = append(append(joined, first...), second...)
		e.Flags, e.Read, e.Idle = e.Flags&flagBits, false, 0
	case w.hasCAS && found && e.Version != w.cas:
		e.Value, e.Flags, e.Read, e.Idle = w.value, w.flags|e.Flags&won|stale, false, 0
	default:
		*e = cache.Entry{Value: w.value, Flags: w.flags, TTL: w.ttl}
		if w.joins() {
			e.TTL = w.fresh
		}
		w.result.TTL = e.TTL
		return stored
	}
	w.result = *e
	return stored
}

// join returns room for a value of n bytes and a version, which is valid until the next reply. The
// room is part of the reply buffer. If the buffer is too small, join returns full and sets short.
func (s *session) join(key []byte, n int) (room []byte, r result) {
	if len(key)+n > s.options.MaxItem {
		return nil, refused
	}
	if !s.fits(n + versionBytes) {
		return nil, full
	}
	return s.out[len(s.out):], stored
}

// A number is an arithmetic command.
type number struct {
	key     []byte
	delta   uint64
	down    bool   // subtract, to 0 at least
	cas     uint64 // the version that the entry must have; 0 is any
	vivify  bool   // a missing entry is added, with initial and fresh
	initial uint64
	fresh   time.Duration
	hasTTL  bool
	ttl     time.Duration
	chosen  uint64 // the version that the entry gets; 0 is the next one

	value  uint64        // the result
	expiry time.Duration // the TTL before ttl applies
}

// add runs n. It returns the stored version.
func (s *session) add(n *number) (result, uint64) {
	r := stored
	s.tellFetchBefore(n.key)
	version, err := s.update(n.key, func(e *cache.Entry, found bool) cache.Change {
		if r = n.apply(e, found); r != stored {
			return cache.Keep
		}
		s.scratch = strconv.AppendUint(s.scratch[:0], n.value, 10)
		e.Value, e.Idle = s.scratch, 0
		if r = s.pack(n.key, e, n.chosen, false); r != stored {
			return cache.Keep
		}
		return cache.Store
	})
	hits, misses := incrHits, incrMisses
	if n.down {
		hits, misses = decrHits, decrMisses
	}
	switch r { // neither if the value is no number, or has another version
	case stored:
		s.counts[hits].Add(1)
	case notFound:
		s.counts[misses].Add(1)
	}
	return s.stored(r, cmp.Or(n.chosen, version), err)
}

// apply computes the result, and sets the TTL of e.
func (n *number) apply(e *cache.Entry, found bool) result {
	if !found && n.vivify {
		n.value, e.TTL, n.expiry = n.initial, n.fresh, n.fresh
		return stored
	}
	value, ok := leadingUint(e.Value)
	switch {
	case !found:
		return notFound
	case n.cas > 0 && n.cas != e.Version:
		return exists
	case !ok:
		return notNumber
	case n.down:
		n.value = value - min(value, n.delta)
	default:
		n.value = value + n.delta // wraps around, as in memcached
	}
	n.expiry = e.TTL
	if n.hasTTL {
		e.TTL = n.ttl
	}
	return stored
}
