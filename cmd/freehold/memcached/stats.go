// Statistics: the command stats, under memcached's names.

package memcached

import (
	"os"
	"runtime"
	"strconv"
	"time"
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
