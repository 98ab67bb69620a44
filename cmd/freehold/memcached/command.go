// Commands: the table of all commands, and how a session runs one.

package memcached

import (
	"bytes"
	"math"
	"slices"
)

// A command is a row of the table. Words are counted with the command's name.
type command struct {
	run         func(s *session, words [][]byte, data []byte)
	least, most int // numbers of words; a most of 0 is any number of keys, the last ones in s.rest
	size        int // index of the word with the size of the data block; 0 if there is no block
	noreply     int // the first word that may be noreply, as the last one, which drops the reply; 0 is none
}

var commands = map[string]*command{
	"get":  {run: (*session).get, least: 2},
	"gets": {run: (*session).gets, least: 2},
	"gat":  {run: (*session).gat, least: 3},
	"gats": {run: (*session).gats, least: 3},

	"set":     {run: store(setMode), least: 5, most: 6, size: 4, noreply: 1},
	"add":     {run: store(addMode), least: 5, most: 6, size: 4, noreply: 1},
	"replace": {run: store(replaceMode), least: 5, most: 6, size: 4, noreply: 1},
	"append":  {run: store(appendMode), least: 5, most: 6, size: 4, noreply: 1},
	"prepend": {run: store(prependMode), least: 5, most: 6, size: 4, noreply: 1},
	"cas":     {run: store(casMode), least: 5, most: 7, size: 4, noreply: 1}, // the block is skipped if the version is missing

	"incr":   {run: (*session).incr, least: 3, most: 4, noreply: 1},
	"decr":   {run: (*session).decr, least: 3, most: 4, noreply: 1},
	"delete": {run: (*session).delete, least: 2, most: 4, noreply: 2},
	"touch":  {run: (*session).touch, least: 3, most: 4, noreply: 1},

	"mg": {run: (*session).metaGet, least: 2, most: maxWords},
	"ms": {run: (*session).metaSet, least: 2, most: maxWords, size: 2},
	"md": {run: (*session).metaDelete, least: 2, most: maxWords},
	"ma": {run: (*session).metaArithmetic, least: 2, most: maxWords},
	"me": {run: (*session).metaDebug, least: 2, most: maxWords},
	"mn": {run: (*session).metaNoop, least: 1, most: maxWords},

	"stats":          {run: (*session).stats, least: 1, most: maxWords},
	"flush_all":      {run: (*session).flushAll, least: 1, most: 3, noreply: 1},
	"cache_memlimit": {run: (*session).memLimit, least: 2, most: 3, noreply: 1},
	"version":        {run: (*session).version, least: 1, most: maxWords},
	"verbosity":      {run: (*session).verbosity, least: 2, most: 3, noreply: 1},
	"lru_crawler":    {run: (*session).crawler, least: 2, most: maxWords},
	"lru":            {run: (*session).lru, least: 3, most: maxWords},
	"slabs":          {run: (*session).slabs, least: 3, most: maxWords, noreply: 1},
	"shutdown":       {run: (*session).shutdown, least: 1, most: maxWords},
	"refresh_certs":  {run: (*session).refreshCerts, least: 1, most: maxWords},
	"watch":          {run: (*session).startWatching, least: 1, most: maxWords},
	"quit":           {run: (*session).quit, least: 1, most: maxWords},
}

const (
	leastLine   = 2 // bytes of the shortest command
	badFormat   = "CLIENT_ERROR bad command line format"
	tooLarge    = "SERVER_ERROR object too large for cache"
	outOfMemory = "SERVER_ERROR out of memory storing object"
)

// command runs the command of a line. after is the input behind the line; it begins with the data
// block, if the command has one. command returns the number of bytes of after that it used. If the
// data block is incomplete, it sets need to the block's size and returns false.
func (s *session) command(words [][]byte, after []byte) (used int, ok bool) {
	if len(s.text) < leastLine || len(words) == 0 {
		s.reply(badFormat)
		return 0, true
	}
	if s.isStrange() {
		return s.authenticate(words, after)
	}
	c := commands[string(words[0])]
	switch {
	case c == nil:
		s.unknown(words)
		return 0, true
	case len(words) < c.least || c.most > 0 && (len(words) > c.most || len(s.rest) > 0):
		s.reply(badFormat)
		return 0, true
	}
	s.noReply = len(s.out)
	used, ok = s.perform(c, words, after)
	if c.noreply > 0 && len(words) > c.noreply && bytes.Equal(words[len(words)-1], noreply) {
		s.out = s.out[:s.noReply]
	}
	return used, ok
}

var noreply = []byte("noreply")

// perform is command for a row of the table.
func (s *session) perform(c *command, words [][]byte, after []byte) (used int, ok bool) {
	if c.size == 0 {
		c.run(s, words, nil)
		return 0, true
	}
	size, ok := s.blockSize(c, words)
	used = size + len(crlf)
	switch {
	case !ok:
		return 0, true
	case len(after) < used:
		if line := len(s.text) + len(crlf); line+used > len(s.buf) && !s.grow(line+used, s.mostJoin(words)) {
			s.refuse(words, size, full)
			return 0, true
		}
		s.need = used
		return 0, false
	case !bytes.Equal(after[size:used], crlf):
		s.reply("CLIENT_ERROR bad data chunk")
	default:
		c.run(s, words, after[:size])
	}
	return used, true
}

// mostJoin returns the most bytes that join needs for a command with a data block, or 0.
func (s *session) mostJoin(words [][]byte) int {
	switch string(words[0]) {
	case "append", "prepend":
	case "ms":
		if !slices.ContainsFunc(words[3:], func(flag []byte) bool {
			return flag[0] == 'E' || string(flag) == "MA" || string(flag) == "MP"
		}) {
			return 0
		}
	default:
		return 0
	}
	return s.options.MaxItem + versionBytes + replyHead
}

// blockSize parses the size of the data block. If it is malformed or too large, blockSize replies
// and returns false. The session skips a block that is too large.
func (s *session) blockSize(c *command, words [][]byte) (int, bool) {
	if len(words) <= c.size {
		s.reply(badFormat)
		return 0, false
	}
	size, ok := parseUint(words[c.size])
	if !ok || size > math.MaxInt32-2 {
		s.reply(badFormat)
		return 0, false
	}
	if int(size)+len(words[1]) > s.options.MaxItem {
		s.refuse(words, int(size), refused)
		return 0, false
	}
	return int(size), true
}

// refuse replies to a command whose data block is too large or finds no memory. The session skips
// the block as it arrives.
func (s *session) refuse(words [][]byte, size int, why result) {
	s.skip = size + len(crlf)
	key, name := words[1], string(words[0])
	if name == "ms" {
		var m meta
		if !s.parse(&m, words, 3) {
			return
		}
		key, name = m.key, "set"
	}
	s.reply(classicReplies[why])
	s.countEither(why == refused, storeTooLarge, storeNoMemory)
	s.tellStore(key, why, name, 0, size)
	if name == "set" && len(key) <= maxKey {
		s.cache.Delete(key) // rather than an old value
	}
}

// unknown replies to an unknown command. It closes the connection of an HTTP client.
func (s *session) unknown(words [][]byte) {
	if bytes.HasPrefix(words[len(words)-1], []byte("HTTP/")) {
		s.err = errRefused
		return
	}
	s.reply("ERROR")
}

// parseUint parses a decimal number.
func parseUint(word []byte) (n uint64, ok bool) {
	if len(word) == 0 {
		return 0, false
	}
	for _, c := range word {
		d := uint64(c - '0')
		if d > 9 || n > (math.MaxUint64-d)/10 {
			return 0, false
		}
		n = 10*n + d
	}
	return n, true
}

// leadingUint parses the number at the start of a value, as strtoull does. White space may precede
// it; white space or the end of the value must follow it.
func leadingUint(value []byte) (n uint64, ok bool) {
	const space = " \t\n\v\f\r"
	word := bytes.TrimLeft(value, space)
	if end := bytes.IndexAny(word, space); end >= 0 {
		word = word[:end]
	}
	return parseUint(bytes.TrimPrefix(word, []byte("+")))
}

// parseInt is parseUint for numbers that may be negative.
func parseInt(word []byte) (n int64, ok bool) {
	digits := bytes.TrimPrefix(word, []byte("-"))
	u, ok := parseUint(digits)
	n = int64(min(u, math.MaxInt64))
	if len(digits) < len(word) {
		n = -n
	}
	return n, ok
}

// parseUint32 is parseUint for numbers of 32 bits, such as a client's flags.
func parseUint32(word []byte) (n uint64, ok bool) {
	n, ok = parseUint(word)
	return n, ok && n <= math.MaxUint32
}
