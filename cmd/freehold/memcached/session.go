// Sessions: one client, its buffers, and the commands in them.
//
//	buf  |  done  | complete commands | a part of one | room |
//	              ^ from                              ^ to     the next Read fills the room
//
// After each Read, the session runs all complete commands, and sends their replies by one Write. It
// has a buffer of its own for input and one for replies. Larger commands and replies take blocks of
// the server's heap, for which the session needs a grant: see grants.go.

package memcached

import (
	"bytes"
	"errors"
	"io"
	"os"

	"github.com/freehold-go/freehold"
)

const (
	bufferBytes = 16 << 10 // of a session's own buffer
	outBytes    = 40 << 10 // of its own reply buffer: two times replyBytes, and a head
	ownBytes    = bufferBytes + outBytes
	replyBytes  = 16 << 10 // waiting replies are written at this size; a larger reply needs a grant
	replyHead   = 1 << 10  // most bytes of a reply besides its value
	maxLine     = 2048     // bytes of a line, except of commands with any number of keys
	maxKey      = 250
	maxWords    = 24 // that split finds in one call
)

// A session serves one client. One goroutine runs it; others read only counts, id and conn.
type session struct {
	*Server
	conn     io.ReadWriter
	id       uint64   // in the order of their beginnings
	watcher  *watcher // nil unless the client watches
	buf      []byte   // own, or inBlock
	from, to int

	scanned int // bytes from from on that have no newline
	need    int // bytes of the command at from with its data block, 0 if unknown
	skip    int // bytes of a refused data block that have not arrived
	ahead   int // commands behind the current one whose items are prefetched

	*workspace // nil while the session waits with nothing in its buffers

	out     []byte // ownOut, or outBlock
	noReply int    // length of out before the reply to the current command
	short   int    // bytes that a reply needs for which out has no room
	err     error  // why the session ends
	counts  counters

	grant    *grant // for inBlock and outBlock, or nil
	free     int    // bytes of the grant that outBlock may take
	inBlock  []byte
	outBlock []byte
	proven   bool // the session has completed a large command or reply

	known    bool // the client has authenticated
	failures int  // of authentication
}

// errQuit ends a session at the client's request. errRefused ends it if the client breaks the
// protocol.
var (
	errQuit    = errors.New("memcached: the client has quit")
	errRefused = errors.New("memcached: the client was refused")
)

// run serves the client until it leaves or its connection fails.
func (s *session) run() error {
	defer s.giveBack()
	if d, ok := s.conn.(*deadlined); ok {
		s.serveReady(d)
	}
	for s.err == nil {
		if s.watcher != nil {
			s.watch()
			break
		}
		s.turn()
	}
	if s.watcher != nil {
		s.watchers.leave(s.watcher)
	}
	if s.err == errQuit || s.err == errRefused || s.err == io.EOF {
		return nil
	}
	return s.err
}

// turn reads once, runs all commands that have arrived, and replies.
func (s *session) turn() input {
	found := someInput
	if s.fill() {
		found = fullInput
	}
	if s.err == errNotReady {
		s.err = nil
		return noInput
	}
	s.batch()
	s.flush()
	return found
}

// An input is the result of a read.
type input int

const (
	noInput   input = iota
	someInput       // less than the room: no more has arrived, except perhaps the end of the connection
	fullInput       // as much as the room
)

// errNotReady says that a read that does not wait has found no input.
var errNotReady = errors.New("memcached: no input yet")

// reason returns why the session ended, in the words of watch connevents.
func (s *session) reason() string {
	d, ok := s.conn.(*deadlined)
	switch {
	case s.err == errQuit || s.err == io.EOF:
		return "normal"
	case ok && d.isCut():
		return "too_slow"
	case ok && d.isClosing():
		return "shutdown"
	case errors.Is(s.err, os.ErrDeadlineExceeded):
		return "idle_timeout"
	}
	return "error"
}

// fill makes room in the buffer and reads once. It reports whether it has filled the room.
func (s *session) fill() (isFull bool) {
	if s.workspace == nil {
		if s.workspace, s.err = s.spares.take(s.options.Heap); s.err != nil {
			return false
		}
		s.buf, s.out, s.from, s.to = s.own, s.ownOut, 0, 0
	}
	s.shrink()
	switch {
	case s.from == s.to:
		s.from, s.to = 0, 0
	case s.from > 0 && (s.to == len(s.buf) || s.from+s.need > len(s.buf)):
		s.to = copy(s.buf, s.buf[s.from:s.to])
		s.from = 0
	case s.to == len(s.buf): // a long line of keys: its grant includes a reply
		if most := s.mostCommand(); !s.grow(most, most+replyHead) {
			s.fail(outOfMemory)
			return false
		}
	}
	n, err := s.conn.Read(s.buf[s.to:])
	s.to += n
	s.counts[bytesRead].Add(uint64(n))
	s.err = err
	return s.to == len(s.buf)
}

// mostCommand returns the bytes of the longest command: a line with its data block, or a line of
// keys.
func (s *session) mostCommand() int { return maxLine + len(crlf) + s.options.MaxItem + len(crlf) }

// grow replaces the buffer by a block of n bytes. The grant includes forReply bytes for a reply.
// grow may wait for memory, and returns false if there is none.
func (s *session) grow(n, forReply int) bool {
	if s.outBlock != nil {
		s.flush()
	}
	if !s.acquire(n+forReply, true) {
		return false
	}
	if s.inBlock = s.block(n); s.inBlock == nil {
		s.endGrant()
		return false
	}
	s.free = forReply
	s.to = copy(s.inBlock, s.buf[s.from:s.to])
	s.buf, s.from = s.inBlock, 0
	return true
}

// shrink returns to the session's own buffer once the unread input fits.
func (s *session) shrink() {
	if s.inBlock == nil || s.to-s.from > bufferBytes || s.need > bufferBytes {
		return
	}
	s.to = copy(s.own, s.buf[s.from:s.to])
	s.buf, s.from = s.own, 0
	s.options.Heap.Free(s.inBlock)
	s.inBlock = nil
	s.endGrant()
}

// acquire reports whether the session has n free bytes of a grant. Without a grant, it requests
// one.
func (s *session) acquire(n int, wait bool) bool {
	if s.grant != nil {
		return n <= s.free
	}
	g := &grant{bytes: freehold.GoodSize(s.options.Heap, n)}
	if d, ok := s.conn.(*deadlined); ok {
		g.cut = d.cut
	}
	if !s.grants.acquire(g, s.proven, 0) {
		if !wait {
			return false
		}
		if s.flush(); !s.grants.acquire(g, s.proven, 2*s.options.Write) { // the client may wait for the replies
			return false
		}
	}
	s.grant, s.free = g, n
	return true
}

// block allocates n bytes, which the grant covers, or returns nil.
func (s *session) block(n int) []byte {
	b, err := s.options.Heap.Alloc(n, 1)
	if err != nil {
		return nil
	}
	return b
}

// endGrant releases the grant once both blocks are freed.
func (s *session) endGrant() {
	if s.grant != nil && s.inBlock == nil && s.outBlock == nil {
		s.grants.release(s.grant)
		s.grant, s.free, s.proven = nil, 0, true
	}
}

// giveBack frees all memory of a session that ends.
func (s *session) giveBack() {
	s.release()
	if s.inBlock != nil {
		s.options.Heap.Free(s.inBlock)
		s.inBlock = nil
	}
	s.endGrant()
	s.giveWorkspace()
}

// fits reports whether out has room for a reply with a value of n bytes. If not, the command must
// change nothing, and run once more if again returns true.
func (s *session) fits(n int) bool {
	n += replyHead
	switch {
	case s.outBlock == nil && n <= replyBytes, len(s.out)+n <= cap(s.outBlock):
		return true
	case s.outBlock == nil && s.acquire(len(s.out)+n, false):
		if s.useBlock(len(s.out) + n) {
			return true
		}
	}
	s.short = n
	return false
}

// again makes room for a reply that did not fit. It returns true if the command must run once more.
// It may wait.
func (s *session) again() bool {
	if s.short == 0 {
		return false
	}
	if !s.makeRoom() && s.err == nil {
		s.fail("SERVER_ERROR out of memory writing get response")
	}
	return s.err == nil
}

// makeRoom sends the replies and makes room for short bytes. It may wait. It returns false if there
// is no memory or the connection has failed.
func (s *session) makeRoom() bool {
	n := s.short
	s.short = 0
	s.flush()
	return s.err == nil && (n <= replyBytes || s.acquire(n, true) && s.useBlock(n))
}

// useBlock moves the replies to a block of n bytes, which the grant covers.
func (s *session) useBlock(n int) bool {
	b := s.block(n)
	if b == nil {
		s.endGrant()
		return false
	}
	s.outBlock, s.free = b, s.free-n
	s.out = append(b[:0], s.out...)
	return true
}

// batch runs all complete commands, even if the connection has failed behind them.
func (s *session) batch() {
	failed := s.err
	s.err = nil
	for s.err == nil && s.watcher == nil && s.step() {
	}
	if s.err == nil {
		s.err = failed
	}
}

// step runs one command, or skips refused data. It returns false if the input has no complete
// command.
func (s *session) step() bool {
	in := s.buf[s.from:s.to]
	if n := min(s.skip, len(in)); n > 0 {
		s.skip -= n
		s.from += n
		return true
	}
	if len(in) == 0 || len(in) < s.need {
		return false
	}
	if s.scanned == 0 && !s.isStrange() {
		if used := s.lookUp(in); used > 0 {
			s.from += used
			return true
		}
	}
	if s.ahead > 0 {
		s.ahead--
	} else if in[0] == 's' && s.need == 0 && s.scanned == 0 && !s.isStrange() {
		s.ahead = max(s.prefetchSets(in)-1, 0)
	}
	if in[0] == binaryMagic {
		s.fail("CLIENT_ERROR the binary protocol is not supported, only the text and meta commands")
		return true
	}
	line, ok := s.line(in)
	if !ok {
		return false
	}
	end := len(line) + 1
	s.text = bytes.TrimSuffix(line, crlf[:1])
	data, ok := s.command(s.split(s.text), in[end:])
	if !ok {
		s.need += end
		return false
	}
	s.from += end + data
	s.need, s.scanned = 0, 0
	s.shrink()
	s.spill()
	return true
}

// binaryMagic is the first byte of requests in the binary protocol.
const binaryMagic = 0x80

var crlf = []byte("\r\n")

// line returns the first line of in, without its newline, if it is complete.
func (s *session) line(in []byte) ([]byte, bool) {
	end := bytes.IndexByte(in[s.scanned:], '\n')
	length := s.scanned + end
	if end < 0 {
		s.scanned = len(in)
		length = len(in)
	}
	if len(bytes.TrimSuffix(in[:length], crlf[:1])) > maxLine && (length > s.options.MaxItem+maxLine || s.isStrange() || !hasKeys(in)) {
		s.fail("CLIENT_ERROR line is too long")
		return nil, false
	}
	return in[:length], end >= 0
}

// hasKeys reports whether a line begins with a command that takes any number of keys.
func hasKeys(line []byte) bool {
	name, _ := nextWord(line)
	c, ok := commands[string(name)]
	return ok && c.most == 0
}

// split returns the first words of a line, and sets rest to the rest of it. The words are valid
// until the next split.
func (s *session) split(line []byte) [][]byte {
	n := 0
	for ; n < maxWords; n++ {
		if s.words[n], line = nextWord(line); len(s.words[n]) == 0 {
			break
		}
	}
	s.rest = line
	return s.words[:n]
}

// nextWord returns the first word of a line and the rest. At the end of a line the word is empty.
func nextWord(line []byte) (word, rest []byte) {
	for len(line) > 0 && line[0] == ' ' {
		line = line[1:]
	}
	if end := bytes.IndexByte(line, ' '); end >= 0 {
		return line[:end], line[end+1:]
	}
	return line, nil
}

// flush writes the replies.
func (s *session) flush() {
	if len(s.out) > 0 {
		n, err := s.conn.Write(s.out)
		s.counts[bytesWritten].Add(uint64(n))
		if err != nil && (s.err == nil || s.err == errQuit || s.err == errRefused) {
			s.err = err
		}
	}
	s.noReply = 0
	s.release()
}

// release drops the replies, and frees their block.
func (s *session) release() {
	if s.outBlock != nil {
		s.free += len(s.outBlock)
		s.options.Heap.Free(s.outBlock)
		s.outBlock = nil
		s.endGrant()
	}
	if s.workspace != nil {
		s.out = s.ownOut
	}
}

// reply appends a line to the replies.
func (s *session) reply(text string) {
	s.out = append(s.out, text...)
	s.out = append(s.out, crlf...)
}

// fail replies and ends the session.
func (s *session) fail(text string) {
	s.reply(text)
	s.err = errRefused
}
