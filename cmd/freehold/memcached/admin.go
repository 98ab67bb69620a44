// Administration: statistics, flush_all, and commands that operators' tools send.

package memcached

import (
	"bytes"
	"encoding/base64"
	"maps"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/freehold-go/freehold/cache"
)

// stats replies with figures, under memcached's names.
func (s *session) stats(words [][]byte, _ []byte) {
	what := ""
	if len(words) > 1 {
		what = string(words[1])
	}
	switch what {
	case "":
		s.general()
	case "reset":
		s.reset()
		s.reply("RESET")
		return
	case "settings":
		s.settings()
	case "items":
		st := s.cache.Stats()
		s.stat("items:1:number", uint64(st.Len))
		s.stat("items:1:evicted", s.counted(st).Evicted)
		s.stat("items:1:mem_requested", uint64(st.Live))
	case "slabs":
		s.slabClass()
	case "conns":
		s.connections()
	case "sizes":
		if !s.sizes() {
			return
		}
	case "cachedump":
		if !s.dump(words) {
			return
		}
	case "detail":
		s.reply("CLIENT_ERROR stats detail is not supported")
		return
	default:
		s.reply("ERROR")
		return
	}
	s.reply("END")
}

func (s *session) stat(name string, value uint64) {
	s.statName(name)
	s.out = append(strconv.AppendUint(s.out, value, 10), crlf...)
}

func (s *session) statText(name, value string) {
	s.statName(name)
	s.reply(value)
}

func (s *session) statName(name string) {
	s.out = append(append(append(s.out, "STAT "...), name...), ' ')
}

// general is stats without an argument.
func (s *session) general() {
	st := s.cache.Stats()
	since := s.counted(st)
	t, conns, opened, rejected := s.Server.totals()
	now := time.Now()
	s.stat("pid", uint64(os.Getpid()))
	s.stat("uptime", uint64(now.Sub(s.began)/time.Second))
	s.stat("time", uint64(now.Unix()))
	s.statText("version", s.options.Version)
	s.statText("freehold_version", s.options.Build)
	s.stat("pointer_size", strconv.IntSize)
	s.stat("max_connections", uint64(s.options.MaxConns))
	s.stat("curr_connections", uint64(conns))
	s.stat("total_connections", opened)
	s.stat("rejected_connections", rejected)
	s.stat("failed_handshakes", s.failedHandshakes())
	for i, n := range t {
		s.stat(counterNames[i], n)
	}
	s.stat("get_misses", t[cmdGet]-min(t[getHits], t[cmdGet]))
	s.stat("touch_misses", t[cmdTouch]-min(t[touchHits], t[cmdTouch]))
	s.stat("limit_maxbytes", uint64(st.MaxBytes))
	s.stat("accepting_conns", 1)
	if s.options.Reload != nil {
		s.stat("time_since_server_cert_refresh", uint64((now.UnixNano()-s.reloaded.Load())/int64(time.Second)))
	}
	s.stat("threads", uint64(runtime.GOMAXPROCS(0)))
	s.stat("curr_items", uint64(st.Len))
	s.stat("total_items", since.Sets)
	s.stat("bytes", uint64(st.Live))
	s.stat("evictions", since.Evicted)
	s.stat("reclaimed", since.Expired)
	if d := st.Disk; d.FileBytes > 0 {
		s.stat("get_extstore", d.Hits)
		s.stat("badcrc_from_extstore", d.Errors)
		s.stat("extstore_objects_used", uint64(d.Items))
		s.stat("extstore_objects_read", d.Hits)
		s.stat("extstore_objects_written", d.Written)
		s.stat("extstore_objects_evicted", d.Evicted)
		s.stat("extstore_objects_rejected", d.Rejected)
		s.stat("extstore_objects_dropped", d.Dropped)
		s.stat("extstore_bytes_written", d.WrittenBytes)
		s.stat("extstore_limit_maxbytes", uint64(d.FileBytes))
		s.stat("extstore_index_bytes", uint64(d.IndexBytes))
		s.stat("extstore_off", uint64(bit(d.Off != nil)))
	}
	inUse, waited, denied := s.grants.figures()
	s.stat("buffer_bytes", uint64(inUse))
	s.stat("buffer_waits", waited)
	s.stat("buffer_refused", denied)
	written, failed, last := s.saved()
	s.stat("snapshots", written)
	s.stat("snapshots_failed", failed)
	s.stat("snapshot_time", last)
	s.stat("snapshot_loading", uint64(bit(s.loading.Load())))
	watching, sent, skipped := s.watchers.figures()
	s.stat("log_watchers", uint64(watching))
	s.stat("log_worker_written", sent+skipped)
	s.stat("log_watcher_sent", sent)
	s.stat("log_watcher_skipped", skipped)
	for _, name := range []string{ // names that exporters read, always 0 here
		"get_expired", "get_flushed", "hash_bytes", "listen_disabled_num", "lrutail_reflocked",
		"time_in_listen_disabled_us", "conn_yields", "log_worker_dropped",
	} {
		s.stat(name, 0)
	}
}

// slabClass is stats slabs: one class with all items, under the names that exporters read.
func (s *session) slabClass() {
	st := s.cache.Stats()
	t, _, _, _ := s.Server.totals()
	for _, i := range []counter{getHits, cmdSet, deleteHits, incrHits, decrHits, casHits, casBadval, touchHits} {
		s.stat("1:"+counterNames[i], t[i])
	}
	for _, name := range []string{"used_chunks", "total_chunks"} {
		s.stat("1:"+name, uint64(st.Len))
	}
	for _, name := range []string{"chunk_size", "chunks_per_page", "total_pages", "free_chunks", "free_chunks_end"} {
		s.stat("1:"+name, 0) // items have any size
	}
	s.stat("active_slabs", 1)
	s.stat("total_malloced", uint64(st.Reserved))
}

// settings is stats settings.
func (s *session) settings() {
	st := s.cache.Stats()
	s.stat("maxbytes", uint64(st.MaxBytes))
	s.stat("maxconns", uint64(s.options.MaxConns))
	s.stat("item_size_max", uint64(s.options.MaxItem))
	s.stat("buffers_max", uint64(s.options.Buffers))
	s.stat("num_threads", uint64(runtime.GOMAXPROCS(0)))
	s.stat("idle_timeout", uint64(s.options.Idle/time.Second))
	evictions := "on"
	if s.options.KeepAll {
		evictions = "off"
	}
	for _, set := range [][2]string{
		{"evictions", evictions}, {"cas_enabled", "yes"}, {"flush_enabled", "yes"}, {"binding_protocol", "ascii"},
		{"auth_enabled_sasl", "no"}, {"auth_enabled_ascii", yesNo(s.options.Admits != nil)},
		{"shutdown_command", yesNo(s.options.Stop != nil)}, {"dump_enabled", "yes"},
	} {
		s.statText(set[0], set[1])
	}
}

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

// sizes is stats sizes: how many items there are of each size, with the 16 B of head that bytes in
// stats has too. It reads all items, so only one client at a time may ask.
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

const itemHead = 16

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

// getLine appends an mg of a key for lru_crawler mgdump. Keys that no line can have, which the flag
// b has brought, are base64 again.
func (s *session) getLine(key []byte, _ *cache.Entry) {
	s.out = append(s.out, "mg "...)
	if bytes.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		s.out = append(base64.StdEncoding.AppendEncode(s.out, key), " b"...)
	} else {
		s.out = append(s.out, key...)
	}
	s.out = append(s.out, crlf...)
}
