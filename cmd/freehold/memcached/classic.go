// Classic commands: the older half of memcached's text protocol.

package memcached

import (
	"errors"
	"strconv"
	"time"

	"github.com/freehold-go/freehold/cache"
)

// expired is a TTL that has passed.
const expired = -time.Second

// relative is the largest exptime in seconds from now. Larger ones are Unix times.
const relative = 30 * 24 * 60 * 60

// ttl converts an exptime of the protocol to a TTL. 0 means forever in both.
func ttl(exptime int64) time.Duration {
	if exptime > relative {
		exptime = min(exptime-time.Now().Unix(), 1<<31)
	} else if exptime == 0 {
		return 0
	}
	if exptime <= 0 {
		return expired
	}
	return time.Duration(exptime) * time.Second
}

// flagBits are the client's bits of an entry's flags. The server has the others.
const flagBits = 1<<32 - 1

func (s *session) get(words [][]byte, _ []byte)  { s.fetch(words[1:], false) }
func (s *session) gets(words [][]byte, _ []byte) { s.fetch(words[1:], true) }
func (s *session) gat(words [][]byte, _ []byte)  { s.fetchAndTouch(words[1:], false) }
func (s *session) gats(words [][]byte, _ []byte) { s.fetchAndTouch(words[1:], true) }

// fetch replies with the values of all keys of a line.
func (s *session) fetch(keys [][]byte, withCAS bool) {
	if !s.areKeys() {
		return
	}
	for ; len(keys) > 0 && s.err == nil; keys = s.split(s.rest) {
		hits := uint64(0)
		s.each(keys, func(i int, e cache.Entry, found bool) {
			if !s.fits(len(e.Value)) {
				return
			}
			s.tellFetch(keys[i], found, len(e.Value))
			if found {
				hits++
				s.value(keys[i], &e, withCAS)
			}
		})
		s.counts[cmdGet].Add(uint64(len(keys)))
		s.counts[getHits].Add(hits)
	}
	s.end()
}

// classicLookup replies to a get of one key.
func (s *session) classicLookup(key []byte, e *cache.Entry, found, withCAS bool) {
	if !s.fits(len(e.Value)) {
		return
	}
	s.tellFetch(key, found, len(e.Value))
	if s.count(found, getHits, cmdGet); found {
		s.value(key, e, withCAS)
	}
	s.reply("END")
}

// fetchAndTouch is fetch that also sets the TTL of each key. The first word is the exptime.
func (s *session) fetchAndTouch(words [][]byte, withCAS bool) {
	exptime, ok := parseInt(words[0])
	if !ok {
		s.reply("CLIENT_ERROR invalid exptime argument")
		return
	}
	if !s.areKeys() {
		return
	}
	life := ttl(exptime)
	for keys := words[1:]; len(keys) > 0; keys = s.split(s.rest) {
		for _, key := range keys {
			s.tellFetchBefore(key)
			found := false
			for more := true; more; more = s.again() {
				found = s.touched(key, life, func(e *cache.Entry) bool {
					fits := s.fits(len(e.Value))
					if fits {
						s.value(key, e, withCAS)
					}
					return fits
				})
			}
			s.count(found, getHits, cmdGet)
			s.count(found, touchHits, cmdTouch)
			if s.spill(); s.err != nil {
				return
			}
		}
	}
	s.end()
}

// end replies with END, unless a reply before it has failed.
func (s *session) end() {
	if s.err == nil {
		s.reply("END")
	}
}

// touched calls f with the entry of key, if there is one. If f returns true, touched sets the TTL
// in the same step. f runs under a lock of the cache.
func (s *session) touched(key []byte, life time.Duration, f func(e *cache.Entry) bool) (found bool) {
	s.cache.Update(key, func(e *cache.Entry, is bool) cache.Change {
		found = is
		if unpack(e); found && !f(e) {
			return cache.Keep
		}
		e.TTL = life
		return cache.Touch
	})
	return found
}

// areKeys reports whether all words of the line may be keys. If not, it replies.
func (s *session) areKeys() bool {
	for word, rest := nextWord(s.text); len(word) > 0; word, rest = nextWord(rest) {
		if len(word) > maxKey {
			s.reply(badFormat)
			return false
		}
	}
	return true
}

// spill writes the replies if they have replyBytes.
func (s *session) spill() {
	if len(s.out) >= replyBytes {
		s.flush()
	}
}

// value appends an entry in the form of get.
func (s *session) value(key []byte, e *cache.Entry, withCAS bool) {
	out := append(s.out, "VALUE "...)
	out = append(out, key...)
	out = append(out, ' ')
	out = strconv.AppendUint(out, e.Flags&flagBits, 10)
	out = append(out, ' ')
	out = strconv.AppendUint(out, uint64(len(e.Value)), 10)
	if withCAS {
		out = append(out, ' ')
		out = strconv.AppendUint(out, e.Version, 10)
	}
	out = append(out, crlf...)
	out = append(out, e.Value...)
	s.out = append(out, crlf...)
}

// store returns the function of a storage command: "set key flags exptime bytes [cas] [noreply]".
func store(mode byte) func(s *session, words [][]byte, data []byte) {
	return func(s *session, words [][]byte, data []byte) {
		flags, ok1 := parseUint32(words[2])
		exptime, ok2 := parseInt(words[3])
		w := write{key: words[1], value: data, mode: mode}
		w.hasCAS = mode == casMode
		ok3 := !w.hasCAS
		if w.hasCAS && len(words) > 5 {
			w.cas, ok3 = parseUint(words[5])
		}
		if !ok1 || !ok2 || !ok3 || len(w.key) > maxKey {
			s.reply(badFormat)
			return
		}
		w.flags, w.ttl = flags, ttl(exptime)
		s.reply(classicReplies[s.write(&w)])
	}
}

func (s *session) incr(words [][]byte, _ []byte) { s.arithmetic(words, false) }
func (s *session) decr(words [][]byte, _ []byte) { s.arithmetic(words, true) }

func (s *session) arithmetic(words [][]byte, down bool) {
	delta, ok := parseUint(words[2])
	switch {
	case len(words[1]) > maxKey:
		s.reply(badFormat)
		return
	case !ok:
		s.reply("CLIENT_ERROR invalid numeric delta argument")
		return
	}
	n := number{key: words[1], delta: delta, down: down}
	if result, _ := s.add(&n); result != stored {
		s.reply(classicReplies[result])
		return
	}
	s.out = append(strconv.AppendUint(s.out, n.value, 10), crlf...)
}

// delete also accepts a time of 0, which old clients send.
func (s *session) delete(words [][]byte, _ []byte) {
	for i, w := range words[2:] {
		if string(w) != "noreply" && (i > 0 || string(w) != "0") {
			s.reply("CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]")
			return
		}
	}
	if len(words[1]) > maxKey {
		s.reply(badFormat)
		return
	}
	s.tellFetchBefore(words[1])
	found := s.remove(words[1])
	s.countEither(found, deleteHits, deleteMisses)
	if found {
		s.reply("DELETED")
		return
	}
	s.reply("NOT_FOUND")
}

// remove deletes an entry, tells watchers, and reports whether there was one.
func (s *session) remove(key []byte) (found bool) {
	if !s.watchers.wants(deletions) {
		return s.cache.Delete(key)
	}
	size := 0
	s.cache.Update(key, func(e *cache.Entry, is bool) cache.Change {
		unpack(e)
		found, size = is, len(e.Value)
		return cache.Remove
	})
	if found {
		s.tellDelete(key, "delete", size)
	}
	return found
}

func (s *session) touch(words [][]byte, _ []byte) {
	exptime, ok := parseInt(words[2])
	switch {
	case len(words[1]) > maxKey:
		s.reply(badFormat)
		return
	case !ok:
		s.reply("CLIENT_ERROR invalid exptime argument")
		return
	}
	s.tellFetchBefore(words[1])
	found := s.cache.Touch(words[1], ttl(exptime))
	s.count(found, touchHits, cmdTouch)
	if found {
		s.reply("TOUCHED")
		return
	}
	s.reply("NOT_FOUND")
}

// failed converts an error of the cache to a result.
func failed(err error) result {
	if errors.Is(err, cache.ErrTooLarge) {
		return refused
	}
	return full
}
