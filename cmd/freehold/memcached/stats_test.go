package memcached

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/cache"
)

// figures returns the lines of a stats command.
func figures(t *testing.T, s *Server, command string) map[string]string {
	t.Helper()
	all := map[string]string{}
	got := talk(t, s, command+"\r\n")
	for line := range strings.Lines(got) {
		if name, value, ok := strings.Cut(strings.TrimPrefix(line, "STAT "), " "); ok {
			all[name] = strings.TrimSuffix(value, "\r\n")
		}
	}
	if !strings.HasSuffix(got, "END\r\n") {
		t.Errorf("%s: %q", command, got)
	}
	return all
}

// change returns what commands change in stats, such as "cmd_get+1 get_hits+1", but for counts of
// bytes and connections.
func change(t *testing.T, s *Server, commands string) string {
	t.Helper()
	before := figures(t, s, "stats")
	talk(t, s, commands)
	after := figures(t, s, "stats")
	var all []string
	for _, name := range slices.Sorted(maps.Keys(after)) {
		switch name {
		case "bytes_read", "bytes_written", "total_connections", "time", "uptime", "bytes":
			continue
		}
		a, _ := strconv.ParseInt(before[name], 10, 64)
		b, _ := strconv.ParseInt(after[name], 10, 64)
		if a != b {
			all = append(all, fmt.Sprintf("%s%+d", name, b-a))
		}
	}
	return strings.Join(all, " ")
}

// Each command changes these figures, and no others. n is a number, a a text, and x is not there.
func TestStatsOfEachCommand(t *testing.T) {
	big := strings.Repeat("x", 70000)
	for commands, want := range map[string]string{
		"get a\r\n":                          "cmd_get+1 get_hits+1",
		"get x\r\n":                          "cmd_get+1 get_misses+1",
		"get a x n\r\n":                      "cmd_get+3 get_hits+2 get_misses+1",
		"gets a\r\nget x\r\n":                "cmd_get+2 get_hits+1 get_misses+1",
		"gat 0 a x\r\n":                      "cmd_get+2 cmd_touch+2 get_hits+1 get_misses+1 touch_hits+1 touch_misses+1",
		"touch a 0\r\n":                      "cmd_touch+1 touch_hits+1",
		"touch x 0\r\n":                      "cmd_touch+1 touch_misses+1",
		"set a 0 0 1\r\n1\r\n":               "cmd_set+1 total_items+1",
		"set x 0 0 1\r\n1\r\n":               "cmd_set+1 curr_items+1 total_items+1",
		"set x 0 -1 1\r\n1\r\n":              "cmd_set+1",
		"add a 0 0 1\r\n1\r\n":               "cmd_set+1",
		"add x 0 0 1\r\n1\r\n":               "cmd_set+1 curr_items+1 total_items+1",
		"replace x 0 0 1\r\n1\r\n":           "cmd_set+1",
		"append a 0 0 1\r\n1\r\n":            "cmd_set+1 total_items+1",
		"prepend x 0 0 1\r\n1\r\n":           "cmd_set+1",
		"cas a 0 0 1 1\r\n1\r\n":             "cas_badval+1 cmd_set+1",
		"cas x 0 0 1 1\r\n1\r\n":             "cas_misses+1 cmd_set+1",
		"ms a 1 C1\r\n1\r\n":                 "cas_badval+1 cmd_meta+1 cmd_set+1",
		"ms a 1\r\n1\r\n":                    "cmd_meta+1 cmd_set+1 total_items+1",
		"ms a 1 MZ\r\n1\r\n":                 "cmd_meta+1",
		"incr n 1\r\n":                       "incr_hits+1 total_items+1",
		"incr x 1\r\n":                       "incr_misses+1",
		"incr n x\r\n":                       "",
		"incr a 1\r\n":                       "",
		"decr a 1\r\n":                       "",
		"ma n C1\r\n":                        "cmd_meta+1",
		"decr n 1\r\n":                       "decr_hits+1 total_items+1",
		"decr x 1\r\n":                       "decr_misses+1",
		"ma n\r\n":                           "cmd_meta+1 incr_hits+1 total_items+1",
		"ma x MD N0\r\n":                     "cmd_meta+1 curr_items+1 decr_hits+1 total_items+1",
		"delete a\r\n":                       "curr_items-1 delete_hits+1",
		"delete x\r\n":                       "delete_misses+1",
		"md a\r\n":                           "cmd_meta+1 curr_items-1 delete_hits+1",
		"md x\r\n":                           "cmd_meta+1 delete_misses+1",
		"md a C1\r\n":                        "cmd_meta+1 delete_misses+1",
		"mg a v\r\n":                         "cmd_get+1 cmd_meta+1 get_hits+1",
		"mg x\r\n":                           "cmd_get+1 cmd_meta+1 get_misses+1",
		"mg a T0\r\n":                        "cmd_meta+1 cmd_touch+1 touch_hits+1",
		"mg x T0\r\n":                        "cmd_meta+1 cmd_touch+1 touch_misses+1",
		"mg x N0\r\n":                        "cmd_get+1 cmd_meta+1 curr_items+1 get_misses+1 total_items+1",
		"mg stale\r\n":                       "cmd_get+1 cmd_meta+1 get_hits+1",
		"me a\r\n":                           "cmd_meta+1",
		"mn\r\n":                             "",
		"flush_all 1000\r\n":                 "cmd_flush+1",
		"flush_all x\r\n":                    "",
		"set a 0 0 70000\r\n" + big + "\r\n": "curr_items-1 store_too_large+1",
		"add a 0 0 70000\r\n" + big + "\r\n": "store_too_large+1",
		"ms a 70000\r\n" + big + "\r\n":      "curr_items-1 store_too_large+1",
		"verbosity 1\r\nversion\r\nstats\r\nnonsense\r\n": "",
		"cache_memlimit 8\r\n":                            "limit_maxbytes+4194304",
	} {
		s := newServer(t)
		talk(t, s, "set a 0 0 1\r\na\r\nset n 0 0 1\r\n5\r\nset stale 0 0 1\r\n1\r\nmd stale I\r\n")
		if got := change(t, s, commands); got != want {
			t.Errorf("%.40q changes %q, want %q", commands, got, want)
		}
		if got := change(t, s, "stats reset\r\n"); strings.Contains(got, "+") {
			t.Errorf("stats reset after %.40q changes %q", commands, got)
		}
		for name, value := range figures(t, s, "stats") {
			if slices.Contains(counterNames[:], name) && value != "0" && name != "bytes_read" && name != "bytes_written" {
				t.Errorf("after stats reset %s is %s", name, value)
			}
		}
	}
}

// Figures that are no counters of commands.
func TestStatsOfTheServer(t *testing.T) {
	s := newServer(t)
	s.options.Idle = 7 * time.Second
	s.began = time.Now().Add(-100 * time.Second)
	talk(t, s, "set a 0 0 10\r\n0123456789\r\nget a\r\n")
	s.Evicted([]byte("k"), cache.Entry{}, cache.Room)
	s.Saved(nil)
	s.Saved(errors.New("no room"))
	s.Saved(errors.New("no room"))
	for command, lines := range map[string][]string{
		"stats": {
			fmt.Sprint("limit_maxbytes ", testBytes), "max_connections 2", "curr_connections 1",
			"rejected_connections 0", "failed_handshakes 0", "version 1.6.45", "freehold_version test", "accepting_conns 1", "curr_items 1", "total_items 1",
			"evictions 0", "reclaimed 0", "buffer_bytes 0", "buffer_waits 0", "buffer_refused 0", "snapshots 1", "snapshots_failed 2", "log_watchers 0", "log_worker_written 0",
			"log_watcher_sent 0", "log_watcher_skipped 0", "idle_kicks 0", "slow_kicks 0", "auth_cmds 0", "get_expired 0", "conn_yields 0", "pointer_size 64",
		},
		"stats settings": {fmt.Sprint("maxbytes ", testBytes), "maxconns 2", fmt.Sprint("item_size_max ", testMaxItem), fmt.Sprint("buffers_max ", LeastBuffers(testMaxItem)), "idle_timeout 7",
			"evictions on", "cas_enabled yes", "flush_enabled yes", "binding_protocol ascii", "auth_enabled_sasl no", "auth_enabled_ascii no", "shutdown_command no", "dump_enabled yes"},
		"stats items": {"items:1:number 1", "items:1:evicted 0"},
		"stats slabs": {"1:get_hits 1", "1:cmd_set 1", "1:delete_hits 0", "1:incr_hits 0", "1:decr_hits 0", "1:cas_hits 0", "1:cas_badval 0", "1:touch_hits 0", "1:used_chunks 1", "1:total_chunks 1",
			"1:chunk_size 0", "1:total_pages 0", "active_slabs 1"},
	} {
		got := figures(t, s, command)
		for _, line := range lines {
			name, value, _ := strings.Cut(line, " ")
			if name == "pointer_size" {
				value = fmt.Sprint(strconv.IntSize)
			}
			if got[name] != value {
				t.Errorf("%s: %s is %q, want %s", command, name, got[name], value)
			}
		}
	}
	all := figures(t, s, "stats")
	for name, least := range map[string]int{"uptime": 100, "time": int(time.Now().Unix()) - 5, "snapshot_time": int(time.Now().Unix()) - 5, "threads": 1, "bytes": 11, "pid": 1} {
		if n, _ := strconv.Atoi(all[name]); n < least || n > least+1000 && name != "pid" {
			t.Errorf("%s is %s, want about %d", name, all[name], least)
		}
	}
	st := s.cache.Stats()
	for command, want := range map[string]string{"stats items": fmt.Sprint("items:1:mem_requested ", st.Live), "stats slabs": fmt.Sprint("total_malloced ", st.Reserved)} {
		name, value, _ := strings.Cut(want, " ")
		if got := figures(t, s, command)[name]; got != value {
			t.Errorf("%s: %s is %s, want %s", command, name, got, value)
		}
	}
	w := &wire{pieces: []string{"get a\r\nstats\r\n"}}
	before := figures(t, s, "stats")
	s.Session(w)
	after := figures(t, s, "stats")
	grew := func(name string) int {
		a, _ := strconv.Atoi(before[name])
		b, _ := strconv.Atoi(after[name])
		return b - a
	}
	// The first stats are counted before they are written, the last ones after they are read.
	if r := grew("bytes_read"); r != len("get a\r\nstats\r\nstats\r\n") {
		t.Errorf("%d bytes read", r)
	}
	if n := grew("bytes_written") - w.out.Len(); n < 1000 || n > 5000 {
		t.Errorf("%d bytes written beside %d", n, w.out.Len())
	}
	if n := grew("total_connections"); n != 2 {
		t.Errorf("%d more connections", n)
	}
}

// Stats count expired items since the last reset. incr and append count as accesses.
func TestStatsOfTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		for range 2 {
			talk(t, s, "set a 0 1 1\r\n1\r\n")
			time.Sleep(3 * time.Second)
			talk(t, s, "touch a 0\r\n")
			if n := statOf(t, s, "reclaimed"); n != 1 {
				t.Errorf("%d items have expired of 1", n)
			}
			talk(t, s, "stats reset\r\n")
			if n := statOf(t, s, "reclaimed"); n != 0 {
				t.Errorf("%d items have expired after a reset", n)
			}
		}
		for _, write := range []string{"incr a 1\r\n", "append a 0 0 1\r\n1\r\n", "ma a\r\n", "touch a 0\r\n"} {
			talk(t, s, "set a 0 0 1\r\n1\r\n")
			time.Sleep(time.Minute)
			if got := talk(t, s, "mg a l u\r\n"); got != "HD l60\r\n" {
				t.Errorf("after a minute: %q", got)
			}
			if got := talk(t, s, write+"mg a l u\r\n"); !strings.HasSuffix(got, "HD l0\r\n") {
				t.Errorf("%q: %q", write, got)
			}
		}
	})
}

// A server with KeepAll stores items until there is no room, refuses others, and loses none.
func TestKeepAll(t *testing.T) {
	c := cache.New(alloctest.New(t), &cache.Options{MaxBytes: testBytes, Access: true, KeepAll: true})
	t.Cleanup(c.Close)
	s := newServer(t)
	s.cache, s.options.KeepAll = c, true
	value := strings.Repeat("B", 8192)
	set := func(i int) string { return talk(t, s, fmt.Sprintf("set k%d 0 0 %d\r\n%s\r\n", i, len(value), value)) }
	n := 0
	for ; set(n) == "STORED\r\n"; n++ {
	}
	if got := set(n); got != "SERVER_ERROR out of memory storing object\r\n" || n < testBytes/len(value)/2 || statOf(t, s, "store_no_memory") != 2 {
		t.Errorf("after %d items: %q", n, got)
	}
	for i := range n {
		if got := talk(t, s, fmt.Sprintf("get k%d\r\n", i)); !strings.Contains(got, value) {
			t.Fatalf("item %d of %d: %q", i, n, got)
		}
	}
	if got := figures(t, s, "stats settings")["evictions"]; got != "off" || statOf(t, s, "evictions") != 0 {
		t.Errorf("evictions %s, and %d of them", got, statOf(t, s, "evictions"))
	}
	for i := range n / 2 {
		talk(t, s, fmt.Sprintf("delete k%d\r\n", i))
	}
	if got := set(n); got != "STORED\r\n" {
		t.Errorf("after half of the items was deleted: %q", got)
	}
}

// Stats count evictions since the last reset.
func TestStatsOfEvictions(t *testing.T) {
	s := newServer(t)
	value := bytes.Repeat([]byte("x"), 60000)
	fill := func() {
		for i := range 200 {
			s.cache.Set(fmt.Append(nil, "key", i), value)
		}
	}
	fill()
	evicted := int(s.cache.Stats().Evicted)
	if n := statOf(t, s, "evictions"); n != evicted || n == 0 {
		t.Errorf("%d evictions, want %d", n, evicted)
	}
	talk(t, s, "stats reset\r\n")
	fill()
	want := int(s.cache.Stats().Evicted) - evicted
	if got := figures(t, s, "stats items")["items:1:evicted"]; statOf(t, s, "evictions") != want || got != fmt.Sprint(want) || want == 0 {
		t.Errorf("%d and %s evictions after a reset, want %d", statOf(t, s, "evictions"), got, want)
	}
}

// A list of keys ends at its limit.
func TestDumpOfSome(t *testing.T) {
	s := newServer(t)
	for i := range 5 {
		talk(t, s, fmt.Sprintf("set %d 0 0 1\r\nv\r\n", i))
	}
	for limit, want := range []int{5, 1, 2} { // 0 is none
		if got := talk(t, s, fmt.Sprintf("stats cachedump 1 %d\r\n", limit)); strings.Count(got, "ITEM ") != want || !strings.HasSuffix(got, "END\r\n") {
			t.Errorf("stats cachedump 1 %d: %q", limit, got)
		}
	}
}
