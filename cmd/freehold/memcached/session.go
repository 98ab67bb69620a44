// Sessions: one client, its buffers, and the commands in them.
//
//	buf  |  done  | complete commands | a part of one | room |
//	              ^ from                              ^ to     the next Read fills the room
//
// Each Read is followed by all commands that are complete, and by one Write of their replies. The
// buffer grows with what has arrived, never with what a client says will come.

package memcached

import (
	"bytes"
	"errors"
	"io"
	"os"
)

const (
	bufferBytes = 16 << 10 // of a session that holds no large command
	replyBytes  = 64 << 10 // replies of a batch are written when they are longer
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
	buf      []byte
	from, to int

	scanned int // bytes of the command at from that have no end of line
	need    int // bytes from from on that the command takes, if it is known
	skip    int // bytes of a refused data block that are still to come

	text    []byte // the line of the command that is carried out
	words   [maxWords][]byte
	rest    []byte // of text, beyond words
	lookups lookups
	key     [maxKey]byte
	out     []byte
	scratch []byte
	err     error // why the session ends
	counts  counters
}

// errQuit ends a session in order, and errRefused one whose client does not speak the protocol.
var (
	errQuit    = errors.New("memcached: the client has quit")
	errRefused = errors.New("memcached: the client was refused")
)

// run serves the client until it leaves or its connection fails.
func (s *session) run() error {
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
	case ok && d.isClosing():
		return "shutdown"
	case errors.Is(s.err, os.ErrDeadlineExceeded):
		return "idle_timeout"
	}
	return "error"
}

// fill makes room in the buffer and reads once.
func (s *session) fill() {
	switch {
	case s.from == s.to:
		s.from, s.to = 0, 0
		if len(s.buf) != bufferBytes {
			s.buf = make([]byte, bufferBytes)
		}
	case s.from > 0 && (s.to == len(s.buf) || s.from+s.need > len(s.buf)):
		s.to = copy(s.buf, s.buf[s.from:s.to])
		s.from = 0
	case s.to == len(s.buf):
		larger := make([]byte, s.grown())
		copy(larger, s.buf)
		s.buf = larger
	}
	n, err := s.conn.Read(s.buf[s.to:])
	s.to += n
	s.counts[bytesRead].Add(uint64(n))
	s.err = err
}

// grown returns the size of the next buffer: twice as large, or as large as the command is.
func (s *session) grown() int {
	n := 2 * len(s.buf)
	if s.need > len(s.buf) {
		n = min(n, s.need)
	}
	return n
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
	if len(s.out) == 0 {
		return
	}
	n, err := s.conn.Write(s.out)
	s.counts[bytesWritten].Add(uint64(n))
	s.out = s.out[:0]
	if cap(s.out) > 2*replyBytes {
		s.out = nil
	}
	if cap(s.scratch) > replyBytes {
		s.scratch = nil
	}
	if err != nil && (s.err == nil || s.err == errQuit || s.err == errRefused) {
		s.err = err
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
