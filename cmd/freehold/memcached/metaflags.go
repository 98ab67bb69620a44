// Flags: the words of meta commands, a letter and perhaps a token each.

package memcached

import (
	"encoding/base64"
	"time"
)

// meta is the parsed line of a meta command.
type meta struct {
	key   []byte // decoded
	word  []byte // the key as the client wrote it
	flags []byte // the rest of the line: words of a letter and its token

	seen       letters // of flags
	touchFirst bool    // T comes before R
	touchLast  bool    // T comes after N
	written    bool    // replies show the stored entry, whatever the order of flags

	life, fresh, recache time.Duration // T, N, R
	clientFlags          uint64        // F
	cas, chosen          uint64        // C, E
	initial, delta       uint64        // J, D
	mode                 byte          // M, or 0
}

// metaFlags are all flags. Each command accepts each of them.
const metaFlags = "bcfhklqstuvxCDEFIJLMNOPRT"

var metaSet = setOf(metaFlags)

const (
	maxFlags  = 17
	maxOpaque = 32
)

// letters is a set of letters.
type letters uint64

func setOf(all string) (set letters) {
	for i := range len(all) {
		set |= 1 << (all[i] - 'A')
	}
	return set
}

func (m *meta) has(letter byte) bool { return m.seen&(1<<(letter-'A')) != 0 }

// parse parses the current line, whose first words are not flags. It replies and returns false if
// the line is wrong.
func (s *session) parse(m *meta, words [][]byte, first int) bool {
	m.word, m.key, m.delta = words[1], words[1], 1
	flags := s.text
	for range min(first, len(words)) {
		_, flags = nextWord(flags)
	}
	problem := badFormat
	if len(m.word) <= maxKey {
		problem = m.parseFlags(flags)
	}
	if problem == "" && m.has('b') {
		n, err := base64.StdEncoding.Decode(s.key[:], m.word)
		if m.key = s.key[:n]; err != nil || n == 0 {
			problem = "CLIENT_ERROR error decoding key"
		}
	}
	if problem != "" {
		s.reply(problem)
	}
	return problem == ""
}

// parseFlags parses all flags. It returns the reply to the first wrong one, or "".
func (m *meta) parseFlags(flags []byte) (problem string) {
	m.flags = flags
	n := 0
	for word, rest := nextWord(flags); len(word) > 0; word, rest = nextWord(rest) {
		if n++; n > maxFlags {
			return "CLIENT_ERROR options flags are too long"
		}
		if problem == "" {
			problem = m.flag(word)
		}
	}
	return problem
}

// flag parses one flag. It returns the reply to a wrong one, or "".
func (m *meta) flag(word []byte) (problem string) {
	letter, token := word[0], word[1:]
	switch {
	case letter < 'A' || letter > 'z' || metaSet&(1<<(letter-'A')) == 0:
		return "CLIENT_ERROR invalid flag"
	case m.has(letter):
		return "CLIENT_ERROR duplicate flag"
	}
	m.seen |= 1 << (letter - 'A')
	ok := true
	switch letter {
	case 'T':
		m.life, ok = parseTTL(token)
		m.touchLast = m.has('N')
	case 'N':
		m.fresh, ok = parseTTL(token)
	case 'R':
		m.recache, ok = parseTTL(token)
		m.touchFirst = m.has('T')
	case 'F':
		m.clientFlags, ok = parseUint32(token)
	case 'C':
		m.cas, ok = parseUint(token)
	case 'E':
		m.chosen, ok = parseUint(token)
	case 'J':
		if m.initial, ok = parseUint(token); !ok {
			return "CLIENT_ERROR invalid numeric initial value"
		}
	case 'D':
		if m.delta, ok = parseUint(token); !ok {
			return "CLIENT_ERROR invalid numeric delta value"
		}
	case 'M':
		if len(token) != 1 {
			return "CLIENT_ERROR incorrect length for M token"
		}
		m.mode = token[0]
	case 'O':
		if len(word) > maxOpaque {
			return "CLIENT_ERROR opaque token too long"
		}
	}
	if !ok {
		return "CLIENT_ERROR bad token in command line format"
	}
	return ""
}

func parseTTL(token []byte) (time.Duration, bool) {
	exptime, ok := parseInt(token)
	return ttl(exptime), ok
}
