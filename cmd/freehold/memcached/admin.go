// Administration: flush_all, and commands that operators' tools send.

package memcached

import (
	"math"
	"time"
)

// flushAll clears the cache, now or after a delay. A later flush_all replaces a pending one.
func (s *session) flushAll(words [][]byte, _ []byte) {
	var after time.Duration
	if len(words) > 2 || len(words) == 2 && string(words[1]) != "noreply" {
		exptime, ok := parseInt(words[1])
		if !ok {
			s.reply("CLIENT_ERROR invalid exptime argument")
			return
		}
		after = max(ttl(exptime), 0)
	}
	s.counts[cmdFlush].Add(1)
	s.clear(after)
	s.reply("OK")
}

// memLimit changes the bound, in MiB. As in Resize, it may be from an eighth of the first bound to
// eight times as much.
func (s *session) memLimit(words [][]byte, _ []byte) {
	mib, ok := parseUint32(words[1])
	first := uint64(s.options.MaxBytes)
	switch limit := mib << 20; {
	case !ok:
		s.reply("ERROR")
	case limit < first/8:
		s.reply("MEMLIMIT_TOO_SMALL cannot set maxbytes to less than an eighth of what it was at first")
	case limit > 8*first || limit > math.MaxInt:
		s.reply("MEMLIMIT_ADJUST_FAILED out of bounds")
	default:
		s.cache.Resize(int(limit))
		s.reply("OK")
	}
}

func (s *session) version([][]byte, []byte) { s.reply("VERSION " + s.options.Version) }

// verbosity has no effect, since the server does not log commands.
func (s *session) verbosity(words [][]byte, _ []byte) {
	if _, ok := parseUint(words[1]); !ok {
		s.reply(badFormat)
		return
	}
	s.reply("OK")
}

func (s *session) quit([][]byte, []byte) { s.err = errQuit }

// shutdown stops the server. It has no reply but the end of the connection. Every stop of this
// server is graceful.
func (s *session) shutdown(words [][]byte, _ []byte) {
	switch {
	case s.options.Stop == nil:
		s.reply("SERVER_ERROR: shutdown not enabled")
	case len(words) > 2 || len(words) == 2 && string(words[1]) != "graceful":
		s.reply("CLIENT_ERROR invalid shutdown mode")
	default:
		s.err = errQuit
		s.options.Stop()
	}
}

// refreshCerts reads the files of TLS and of users again. After an error nothing has changed.
func (s *session) refreshCerts([][]byte, []byte) {
	now := time.Now()
	switch {
	case s.options.Reload == nil:
		s.reply("ERROR")
	case s.options.Reload() != nil:
		s.reply("SERVER_ERROR files were not reloaded; the server's log says why")
	default:
		s.reloaded.Store(now.UnixNano())
		s.reply("OK")
	}
}

// slabs has no effect: there are none.
func (s *session) slabs(words [][]byte, _ []byte) {
	_, isNumber := parseUint(words[2])
	switch {
	case string(words[1]) == "reassign" && len(words) == 4:
		s.reply("CLIENT_ERROR slab reassignment disabled")
	case string(words[1]) != "automove":
		s.reply("ERROR")
	case !isNumber && len(words) < 4: // else it is a setting with a number
		s.reply(badFormat)
	default:
		s.reply("OK")
	}
}

// lru has no effect: this cache orders its entries in another way, and keeps those with short TTLs
// apart by itself.
func (s *session) lru(words [][]byte, _ []byte) {
	ok := false
	switch setting := string(words[1]); {
	case setting == "mode":
		ok = string(words[2]) == "flat" || string(words[2]) == "segmented"
	case setting == "temp_ttl":
		_, ok = parseInt(words[2])
	case setting == "tune" && len(words) >= 6:
		_, ok1 := parseUint32(words[2])
		_, ok = parseUint32(words[3])
		ok = ok && ok1
	}
	if !ok {
		s.reply("ERROR")
		return
	}
	s.reply("OK")
}
