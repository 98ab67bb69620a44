// Sessions: one client, its buffers, and the commands in them.
//
//	buf  |  done  | complete commands | a part of one | room |
//	              ^ from                              ^ to     the next Read fills the room
//
// Each Read is followed by all commands that are complete, and by one Write of their replies. A session has
// buffers of its own for both. What is larger goes to blocks of the server's heap, for which it has a grant:
// see grants.go.

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
	outBytes    = 40 << 10 // of its own replies: almost replyBytes, one more of as much, and its head
	ownBytes    = bufferBytes + outBytes
	replyBytes  = 16 << 10 // replies of a batch are written when they are longer, and one that is needs a grant
	replyHead   = 1 << 10  // the most that a reply has beside a value
	maxLine     = 2048     // bytes of a command's line, but of get and its like
	maxKey      = 250
	maxWords    = 24 // that a line is split into at a time
)

// A session serves one client. One goroutine runs it; others read counts alone.
type session struct {
	*Server
	conn     io.ReadWriter
	id       uint64   // in the order of their beginnings
	watcher  *watcher // if the client watches
	memory   []byte   // a block that has own and ownOut
	own      []byte   // the session's own buffer
	buf      []byte   // own, or inBlock
	from, to int

	scanned int // bytes of the command at from that have no end of line
	need    int // bytes from from on that the command takes, if it is known
	skip    int // bytes of a refused data block that are still to come

	text    []byte // the line of the command that is carried out
	words   [maxWords][]byte
	rest    []byte // of text, beyond words
	lookups lookups
	later   *meta // an mg that may win its entry, which look is about
	look    look
	key     [maxKey]byte
	ownOut  []byte // the session's own replies, empty
	out     []byte // ownOut, or outBlock
	noReply int    // where in out the replies begin to the command that is carried out
	short   int    // bytes that a reply needs and out has no room for
	scratch []byte
	joined  []byte // a block that has the value of an append or prepend
	err     error  // why the session ends
	counts  counters

	grant    *grant // for the following, or nil
	free     int    // bytes of the grant, for outBlock
	inBlock  []byte
	outBlock []byte
	proven   bool // a grant was released in time
}

// errQuit ends a session in order, and errRefused one whose client does not speak the protocol.
var (
	errQuit    = errors.New("memcached: the client has quit")
	errRefused = errors.New("memcached: the client was refused")
)

// run serves the client until it leaves or its connection fails.
func (s *session) run() error {
	defer s.giveBack()
	for s.err == nil {
		s.fill()
		s.batch()
		if s.flush(); s.watcher != nil {
			s.watch()
		}
	}
	if s.err == errQuit || s.err == errRefused || s.err == io.EOF {
		return nil
	}
	return s.err
}

// reason returns why the session has ended, as watchers are told.
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

// fill makes room in the buffer and reads once.
func (s *session) fill() {
	if s.memory == nil {
		if s.memory, s.err = s.options.Heap.Alloc(ownBytes, 1); s.err != nil {
			return
		}
		s.own, s.ownOut = s.memory[:bufferBytes:bufferBytes], s.memory[bufferBytes:bufferBytes]
		s.buf, s.out = s.own, s.ownOut
	}
	s.shrink()
	switch {
	case s.from == s.to:
		s.from, s.to = 0, 0
	case s.from > 0 && (s.to == len(s.buf) || s.from+s.need > len(s.buf)):
		s.to = copy(s.buf, s.buf[s.from:s.to])
		s.from = 0
	case s.to == len(s.buf): // a line of keys, whose replies need a grant while it holds one
		if most := s.mostCommand(); !s.grow(most, most+replyHead) {
			s.fail(outOfMemory)
			return
		}
	}
	n, err := s.conn.Read(s.buf[s.to:])
	s.to += n
	s.counts[bytesRead].Add(uint64(n))
	s.err = err
}

// mostCommand returns the bytes of the longest command: a line with its data block, or a line of keys.
func (s *session) mostCommand() int { return maxLine + len(crlf) + s.options.MaxItem + len(crlf) }

// grow gives the buffer room for n bytes in all, and the reply room for forReply bytes. It may wait. It
// reports false if there is no memory.
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

// shrink goes back to the session's own buffer once the bytes that have arrived fit into it.
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

// acquire gets a grant of n bytes, unless the session has one with n bytes left.
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
		if s.flush(); !s.grants.acquire(g, s.proven, 2*s.options.Write) { // the client may need the replies to go on
			return false
		}
	}
	s.grant, s.free = g, n
	return true
}

// block returns memory of the grant, or nil.
func (s *session) block(n int) []byte {
	b, err := s.options.Heap.Alloc(n, 1)
	if err != nil {
		return nil
	}
	return b
}

// endGrant releases the grant when nothing is left that it is for.
func (s *session) endGrant() {
	if s.grant != nil && s.inBlock == nil && s.outBlock == nil {
		s.grants.release(s.grant)
		s.grant, s.free, s.proven = nil, 0, true
	}
}

// giveBack frees the blocks of a session that ends.
func (s *session) giveBack() {
	s.release()
	if s.inBlock != nil {
		s.options.Heap.Free(s.inBlock)
		s.inBlock = nil
	}
	s.endGrant()
	if s.memory != nil {
		s.options.Heap.Free(s.memory)
		s.memory, s.own, s.ownOut, s.buf, s.out = nil, nil, nil, nil, nil
	}
}

// fits reports whether the replies have room for one of a value of n bytes. If not, the command must change
// nothing and try again when again says so.
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

// again reports whether a reply did not fit, and now does: the command must be tried again. It may wait.
func (s *session) again() bool {
	n := s.short
	if s.short = 0; n == 0 {
		return false
	}
	if s.flush(); n > replyBytes && s.err == nil && !(s.acquire(n, true) && s.useBlock(n)) {
		s.fail("SERVER_ERROR out of memory writing get response")
	}
	return s.err == nil
}

// useBlock moves the replies to a block of n bytes, for which there is a grant.
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

// batch carries out all commands that are complete. What arrives together with an error of the
// connection is carried out as well.
func (s *session) batch() {
	failed := s.err
	s.err = nil
	for s.err == nil && s.watcher == nil && s.step() {
	}
	if s.err == nil {
		s.err = failed
	}
}

// step carries out one command, and reports whether there was one.
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
	if s.scanned == 0 {
		if used := s.lookUp(in); used > 0 {
			s.from += used
			return true
		}
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
	s.freeJoined()
	s.spill()
	return true
}

// freeJoined frees the value that the command has joined, if it has.
func (s *session) freeJoined() {
	if s.joined != nil {
		s.options.Heap.Free(s.joined)
		s.joined = nil
	}
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
	if len(bytes.TrimSuffix(in[:length], crlf[:1])) > maxLine && (length > s.options.MaxItem+maxLine || !hasKeys(in)) {
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

// split returns the first words of a line, until the next split. The rest of the line is in rest.
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

// nextWord returns the first word of a line, which is empty at its end, and what follows.
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
	s.out = s.ownOut
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
