// Lists: commands that read all items, one client at a time, since a list pins memory of the cache.

package memcached

import (
	"bytes"
	"encoding/base64"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/freehold-go/freehold/cache"
)

// dump lists some keys for "stats cachedump class limit". It refuses while another client lists
// keys. There is one class, 1.
func (s *session) dump(words [][]byte) bool {
	if !s.mayList() {
		return false
	}
	defer s.dumping.Unlock()
	limit := uint64(math.MaxUint64)
	if len(words) > 3 {
		if n, ok := parseUint(words[3]); ok && n > 0 {
			limit = n
		}
	}
	for key, e := range s.cache.All() {
		if limit--; s.err != nil || limit == math.MaxUint64 {
			break
		}
		unpack(&e)
		s.out = append(append(s.out, "ITEM "...), key...)
		s.out = strconv.AppendInt(append(s.out, " ["...), int64(len(e.Value)), 10)
		s.out = strconv.AppendInt(append(s.out, " b; "...), expiresAt(&e), 10)
		s.reply(" s]")
		s.spill()
	}
	return true
}

// expiresAt returns the Unix time at which an entry expires, or 0.
func expiresAt(e *cache.Entry) int64 {
	if e.TTL == 0 {
		return 0
	}
	return time.Now().Unix() + left(e)
}

const busy = "BUSY currently processing crawler request"

// mayList locks dumping, or replies and returns false if another client holds it.
func (s *session) mayList() bool {
	if !s.dumping.TryLock() {
		s.reply(busy)
		return false
	}
	return true
}

// sizeStep is the width, in bytes, of the ranges of stats sizes.
const sizeStep = 32

// sizes is stats sizes: the number of items in each range of sizeStep bytes. Their sizes include 16 B
// of head.
func (s *session) sizes() bool {
	if !s.mayList() {
		return false
	}
	defer s.dumping.Unlock()
	numbers := map[int]uint64{}
	for key, e := range s.cache.All() {
		numbers[(len(key)+len(e.Value)+itemHead+sizeStep-1)/sizeStep]++
	}
	for _, n := range slices.Sorted(maps.Keys(numbers)) {
		s.stat(strconv.Itoa(n*sizeStep), numbers[n])
		s.spill()
	}
	return s.err == nil
}

const itemHead = 16 // bytes of head in the sizes of stats sizes

// crawler is lru_crawler. It lists all keys, and accepts the settings of memcached's crawler, which
// have no effect.
func (s *session) crawler(words [][]byte, _ []byte) {
	number, isNumber := uint64(0), false
	if len(words) > 2 {
		number, isNumber = parseUint32(words[2])
	}
	switch what := string(words[1]); {
	case len(words) == 2 && (what == "enable" || what == "disable"), what == "crawl" && len(words) == 3:
		s.reply("OK")
	case len(words) != 3:
		s.reply("ERROR")
	case (what == "tocrawl" || what == "sleep") && !isNumber:
		s.reply(badFormat)
	case what == "sleep" && number > 1_000_000:
		s.reply("CLIENT_ERROR sleep must be one second or less")
	case what == "tocrawl" || what == "sleep":
		s.reply("OK")
	case what == "metadump":
		s.list(s.metaLine, "END")
	case what == "mgdump":
		s.list(s.getLine, "EN")
	default:
		s.reply("ERROR")
	}
}

// list lists all keys, and ends the list with a line.
func (s *session) list(line func(key []byte, e *cache.Entry), end string) {
	if !s.mayList() {
		return
	}
	defer s.dumping.Unlock()
	s.reply("OK")
	for key, e := range s.cache.All() {
		unpack(&e)
		line(key, &e)
		if s.spill(); s.err != nil {
			return
		}
	}
	s.reply(end)
}

// metaLine appends the line of an entry for lru_crawler metadump.
func (s *session) metaLine(key []byte, e *cache.Entry) {
	until := expiresAt(e)
	if until == 0 {
		until = -1
	}
	s.out = appendEscaped(append(s.out, "key="...), key)
	s.out = strconv.AppendInt(append(s.out, " exp="...), until, 10)
	s.out = strconv.AppendInt(append(s.out, " la="...), time.Now().Unix()-seconds(e.Idle), 10)
	s.out = strconv.AppendUint(append(s.out, " cas="...), e.Version, 10)
	s.out = append(append(append(s.out, " fetch="...), yesNo(e.Read)...), " cls=1 size="...)
	s.out = strconv.AppendInt(s.out, int64(len(key)+len(e.Value)), 10)
	s.out = append(strconv.AppendUint(append(s.out, " flags="...), e.Flags&flagBits, 10), " \n"...)
}

// getLine appends an mg of a key for lru_crawler mgdump. A binary key, which came with the flag b, is
// in base64.
func (s *session) getLine(key []byte, _ *cache.Entry) {
	s.out = append(s.out, "mg "...)
	if bytes.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		s.out = append(base64.StdEncoding.AppendEncode(s.out, key), " b"...)
	} else {
		s.out = append(s.out, key...)
	}
	s.out = append(s.out, crlf...)
}
