// Watchers: clients that see the commands of others as lines.
//
//	session --tell--> lines of each watcher --> its own goroutine --> its connection
//
// No session waits for a watcher. A line without room is skipped, and the next line with room
// follows a line with the number of skipped ones. Without watchers, an event costs one load.

package memcached

import (
	"errors"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/freehold-go/freehold/cache"
)

// Kinds of events, as a set.
type kinds uint32

const (
	fetchers kinds = 1 << iota
	mutations
	evictions
	connevents
	deletions
)

var kindNames = map[string]kinds{
	"fetchers": fetchers, "mutations": mutations, "evictions": evictions, "connevents": connevents,
	"deletions": deletions,
	"rawcmds":   0, "sysevents": 0, "proxyreqs": 0, "proxyevents": 0, "proxyuser": 0, // kinds that this server does not have
}

const (
	maxWatchers  = 20
	watcherBytes = 256 << 10 // of lines that are not written yet
	skippedBytes = 32        // for the line skipped=N
)

// watchers are the watchers of a server.
type watchers struct {
	wanted atomic.Uint32 // the kinds of all watchers

	mu            sync.Mutex // guards the following
	all           []*watcher
	line          []byte
	gid           uint64
	sent, skipped uint64
}

// A watcher has the lines for one client.
type watcher struct {
	kinds kinds
	ready chan struct{}

	mu      sync.Mutex // guards the following; it is taken after that of watchers
	lines   []byte
	skipped uint64
}

// wants reports whether a watcher takes events of a kind.
func (ws *watchers) wants(k kinds) bool { return kinds(ws.wanted.Load())&k != 0 }

// tell adds a line for each watcher of a kind. text appends the part after the time and the number.
func (ws *watchers) tell(k kinds, text func(line []byte) []byte) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.gid++
	now := time.Now()
	line := strconv.AppendInt(append(ws.line[:0], "ts="...), now.Unix(), 10)
	micros := strconv.Itoa(1_000_000 + now.Nanosecond()/1000)
	line = append(append(line, '.'), micros[1:]...)
	line = strconv.AppendUint(append(line, " gid="...), ws.gid, 10)
	ws.line = append(text(line), '\n')
	for _, w := range ws.all {
		switch {
		case w.kinds&k == 0:
		case w.add(ws.line):
			ws.sent++
		default:
			ws.skipped++
		}
	}
}

// add adds a line. It returns false if there is no room.
func (w *watcher) add(line []byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.lines)+len(line)+skippedBytes > watcherBytes {
		w.skipped++
		return false
	}
	if w.skipped > 0 {
		w.lines = append(strconv.AppendUint(append(w.lines, "skipped="...), w.skipped, 10), '\n')
		w.skipped = 0
	}
	w.lines = append(w.lines, line...)
	select {
	case w.ready <- struct{}{}:
	default:
	}
	return true
}

// take returns the lines, and reuses the memory of others for the next ones.
func (w *watcher) take(others []byte) (lines []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	lines, w.lines = w.lines, others[:0]
	return lines
}

// enter adds a watcher unless there are too many.
func (ws *watchers) enter(w *watcher) bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if len(ws.all) == maxWatchers {
		return false
	}
	ws.all = append(ws.all, w)
	ws.count()
	return true
}

func (ws *watchers) leave(w *watcher) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.all = slices.DeleteFunc(ws.all, func(other *watcher) bool { return other == w })
	ws.count()
}

// count updates wanted. The caller holds mu.
func (ws *watchers) count() {
	all := kinds(0)
	for _, w := range ws.all {
		all |= w.kinds
	}
	ws.wanted.Store(uint32(all))
}

// figures returns the numbers of watchers, of lines sent to them, and of lines skipped.
func (ws *watchers) figures() (n int, sent, skipped uint64) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return len(ws.all), ws.sent, ws.skipped
}

// startWatching is the command watch, after which the session is a watcher until the client leaves.
func (s *session) startWatching(words [][]byte, _ []byte) {
	w := &watcher{ready: make(chan struct{}, 1)}
	for _, word := range words[1:] {
		k, ok := kindNames[string(word)]
		if !ok {
			s.reply("ERROR")
			return
		}
		w.kinds |= k
	}
	if len(words) == 1 {
		w.kinds = fetchers
	}
	switch {
	case s.options.NoWatch:
		s.reply("CLIENT_ERROR watch commands not allowed")
	case len(s.out) > 0:
		s.reply("ERROR cannot pipeline other commands before watch")
	case !s.watchers.enter(w):
		s.reply("WATCHER_TOO_MANY log watcher limit reached")
	default:
		s.watcher = w
		s.reply("OK")
	}
}

// watch writes lines until the client leaves. It drops all input.
func (s *session) watch() {
	d, isConn := s.conn.(*deadlined)
	if isConn {
		d.waitForever()
	}
	left, done := make(chan struct{}), make(chan error, 1)
	go func() {
		err := s.writeLines(left)
		if isConn {
			d.SetReadDeadline(past) // ends the reads below
		}
		done <- err
	}()
	for s.err == nil {
		s.from, s.to = 0, 0
		s.fill()
	}
	close(left)
	if err := <-done; err != nil && errors.Is(s.err, os.ErrDeadlineExceeded) {
		s.err = err
	}
}

// writeLines writes a watcher's lines until left is closed or a write fails.
func (s *session) writeLines(left chan struct{}) error {
	var lines []byte
	for {
		select {
		case <-left:
			return nil
		case <-s.watcher.ready:
		}
		lines = s.watcher.take(lines)
		n, err := s.conn.Write(lines)
		s.counts[bytesWritten].Add(uint64(n))
		if err != nil {
			return err
		}
	}
}

// appendEscaped appends a key in the encoding of URLs, with a space as %20.
func appendEscaped(b, key []byte) []byte {
	return append(b, strings.ReplaceAll(url.QueryEscape(string(key)), "+", "%20")...)
}

// tellFetch tells watchers of a lookup. size is the size of the value.
func (s *session) tellFetch(key []byte, found bool, size int) {
	if !s.watchers.wants(fetchers) {
		return
	}
	s.watchers.tell(fetchers, func(b []byte) []byte {
		b = appendEscaped(append(b, " type=item_get key="...), key)
		b = append(append(b, " status="...), [...]string{"not_found", "found"}[bit(found)]...)
		return s.appendWho(b, size)
	})
}

// tellFetchBefore is tellFetch for a command that will change the entry.
func (s *session) tellFetchBefore(key []byte) {
	if !s.watchers.wants(fetchers) {
		return
	}
	size := 0
	found := s.cache.Peek(key, func(e cache.Entry) {
		unpack(&e)
		size = len(e.Value)
	})
	s.tellFetch(key, found, size)
}

var (
	storeStatus = [...]string{"stored", "not_stored", "exists", "not_found", "too_large", "no_memory"}
	storeNames  = map[byte]string{setMode: "set", addMode: "add", replaceMode: "replace", appendMode: "append", prependMode: "prepend", casMode: "cas"}
)

// tellStore tells watchers the result of a write.
func (s *session) tellStore(key []byte, r result, command string, ttl int64, size int) {
	if !s.watchers.wants(mutations) {
		return
	}
	s.watchers.tell(mutations, func(b []byte) []byte {
		b = appendEscaped(append(b, " type=item_store key="...), key)
		b = append(append(b, " status="...), storeStatus[r]...)
		b = append(append(b, " cmd="...), command...)
		b = strconv.AppendInt(append(b, " ttl="...), max(ttl, 0), 10)
		return s.appendWho(b, size)
	})
}

// tellDelete tells watchers that a client has deleted an entry or its value.
func (s *session) tellDelete(key []byte, command string, size int) {
	if !s.watchers.wants(deletions) {
		return
	}
	s.watchers.tell(deletions, func(b []byte) []byte {
		b = appendEscaped(append(b, " type=deleted key="...), key)
		return s.appendWho(append(append(b, " cmd="...), command...), size)
	})
}

// appendWho appends the end of a session's line.
func (s *session) appendWho(b []byte, size int) []byte {
	b = strconv.AppendUint(append(b, " clsid=1 cfd="...), s.id, 10)
	return strconv.AppendInt(append(b, " size="...), int64(size), 10)
}

// Evicted tells watchers that the cache has dropped an entry. It is for cache.Options.OnEvict.
func (s *Server) Evicted(key []byte, e cache.Entry, why cache.Reason) {
	if why == cache.Expired || !s.watchers.wants(evictions) {
		return
	}
	unpack(&e)
	s.watchers.tell(evictions, func(b []byte) []byte {
		b = appendEscaped(append(b, " type=eviction key="...), key)
		b = append(append(b, " fetch="...), yesNo(e.Read)...)
		b = strconv.AppendInt(append(b, " ttl="...), left(&e), 10)
		b = strconv.AppendInt(append(b, " la="...), seconds(e.Idle), 10)
		return strconv.AppendInt(append(b, " clsid=1 size="...), int64(len(e.Value)), 10)
	})
}

// tellConnection tells watchers that a client has connected, or left and why.
func (s *session) tellConnection(event, reason string) {
	d, ok := s.conn.(*deadlined)
	if !ok || !s.watchers.wants(connevents) {
		return
	}
	ip, port, transport := "unix", "0", "local"
	if host, p, err := net.SplitHostPort(d.RemoteAddr().String()); err == nil {
		ip, port, transport = host, p, "tcp"
	}
	s.watchers.tell(connevents, func(b []byte) []byte {
		b = append(append(b, " type="...), event...)
		b = append(append(b, " rip="...), ip...)
		b = append(append(b, " rport="...), port...)
		b = append(append(b, " transport="...), transport...)
		b = append(b, reason...)
		return strconv.AppendUint(append(b, " cfd="...), s.id, 10)
	})
}
