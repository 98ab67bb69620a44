// Lookups: pipelined reads of one key each, such as
//
//	mg a v\r\nmg b v\r\nget c\r\n
//
// The cache looks for a run of them at once, so that the processor waits for several items at a
// time. Replies are in order. Other commands end a run, and so do reads that also write.

package memcached

import (
	"bytes"
	"time"

	"github.com/freehold-go/freehold/cache"
)

// maxLookups is the length of a run. GetMany has the same.
const maxLookups = 16

// lookups is a run.
type lookups struct {
	keys [maxLookups][]byte
	all  [maxLookups]lookup
}

// A lookup is an mg if meta has a key, and otherwise a get or gets.
type lookup struct {
	meta    meta
	withCAS bool
}

// plainFlags are the flags with which mg only reads, and counts as an access.
const plainFlags = "cCEfhklOqstv"

var plainSet = setOf(plainFlags)

// lookUp runs the lookups at the start of in, and returns their length.
func (s *session) lookUp(in []byte) (used int) {
	n := 0
	for ; n < maxLookups; n++ {
		if !isLookup(in[used:]) {
			break
		}
		end := bytes.IndexByte(in[used:], '\n')
		if end < 0 {
			break
		}
		line := bytes.TrimSuffix(in[used:used+end], crlf[:1])
		if len(line) > maxLine || !s.lookups.parse(n, line) {
			break
		}
		used += end + 1
	}
	s.each(s.lookups.keys[:n], func(i int, e cache.Entry, found bool) {
		if l := &s.lookups.all[i]; l.meta.key != nil {
			s.metaLookup(&l.meta, &e, found)
		} else {
			s.classicLookup(s.lookups.keys[i], &e, found, l.withCAS)
		}
	})
	return used
}

// prefetchSets prefetches the items of the sets at the start of in, and returns how many there are.
func (s *session) prefetchSets(in []byte) (n int) {
	keys := &s.lookups.keys
	for ; n < maxLookups && bytes.HasPrefix(in, []byte("set ")); n++ {
		end := bytes.IndexByte(in, '\n')
		if end < 0 {
			break
		}
		key, rest := nextWord(in[len("set "):end])
		_, rest = nextWord(rest)
		_, rest = nextWord(rest)
		word, _ := nextWord(rest)
		size, ok := parseUint(bytes.TrimSuffix(word, crlf[:1]))
		used := uint64(end) + 1 + size + uint64(len(crlf))
		if !ok || size > uint64(len(in)) || used > uint64(len(in)) {
			break
		}
		keys[n] = key
		in = in[used:]
	}
	if n > 1 {
		s.cache.Prefetch(keys[:n])
	}
	return n
}

// isLookup reports whether in may begin with a lookup.
func isLookup(in []byte) bool {
	return len(in) > 4 && (in[0] == 'm' && in[1] == 'g' && in[2] == ' ' || in[0] == 'g' && in[1] == 'e' && in[2] == 't')
}

// parse makes lookup n of a line. It returns false if the line is no lookup.
func (ls *lookups) parse(n int, line []byte) bool {
	name, rest := nextWord(line)
	key, rest := nextWord(rest)
	if len(key) == 0 || len(key) > maxKey {
		return false
	}
	ls.keys[n] = key
	l := &ls.all[n]
	switch string(name) {
	case "mg":
		l.meta = meta{key: key, word: key}
		return l.meta.parseFlags(rest) == "" && l.meta.seen&^plainSet == 0
	case "get", "gets":
		more, _ := nextWord(rest)
		l.meta.key, l.withCAS = nil, len(name) == 4
		return len(more) == 0
	}
	return false
}

// A passed entry was read by GetMany before its key's turn. It has the accesses before that read,
// for the flags h and l.
type passed struct {
	key  int
	read bool
	idle time.Duration
}

// each calls f with each key in order, and its entry if the cache has one. It writes the replies
// when they reach replyBytes. If fits refuses a reply, it calls f again with the same key. If f
// sets later, it runs that mg after f, when the entry is no longer held.
func (s *session) each(keys [][]byte, f func(i int, e cache.Entry, found bool)) {
	s.passed = s.passed[:0]
	for next := 0; next < len(keys) && s.err == nil; s.spill() {
		from, full := next, false
		answer := func(i int, e cache.Entry, found bool) {
			unpack(&e)
			s.asPassed(i, &e)
			if full = full || len(s.out) >= replyBytes; full {
				s.pass(i, &e)
				return
			}
			switch f(i, e, found); {
			case s.short > 0:
				s.pass(i, &e)
				full = true
			case s.later != nil:
				full = true
			default:
				next++
			}
		}
		if len(keys) == 1 {
			if !s.cache.View(keys[0], func(e cache.Entry) { answer(0, e, true) }) {
				answer(0, cache.Entry{}, false)
			}
		} else {
			s.cache.GetMany(keys[from:], func(i int, e cache.Entry) {
				for next < from+i && !full {
					answer(next, cache.Entry{}, false)
				}
				answer(from+i, e, true)
			})
			for next < len(keys) && !full {
				answer(next, cache.Entry{}, false)
			}
		}
		s.again()
		if m := s.later; m != nil {
			s.later = nil
			s.metaFetch(m, &s.look)
			next++
		}
	}
}

// pass remembers the accesses of an entry that is read before its key's turn.
func (s *session) pass(i int, e *cache.Entry) {
	if !s.asPassed(i, e) {
		s.passed = append(s.passed, passed{i, e.Read, e.Idle})
	}
}

// asPassed gives e the accesses that it had when its key was passed, and reports whether it was.
func (s *session) asPassed(i int, e *cache.Entry) bool {
	for _, p := range s.passed {
		if p.key == i {
			e.Read, e.Idle = p.read, p.idle
			return true
		}
	}
	return false
}
