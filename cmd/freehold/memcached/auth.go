// Authentication: until a client has said who it is, it may only send
//
//	set <any key> <flags> <exptime> <bytes>\r\n<user> <password>\r\n
//
// and quit. The reply is STORED, or an error. It takes no memory beyond the session's own buffers.

package memcached

import "bytes"

// MaxToken is the size, in bytes, of the longest user and password together, with the byte between
// them.
const MaxToken = 1 << 10

const maxFailures = 10 // a client that fails more often is disconnected

// isStrange reports whether the client must authenticate first.
func (s *session) isStrange() bool { return s.options.Admits != nil && !s.known }

// authenticate is command for a client that has not authenticated yet.
func (s *session) authenticate(words [][]byte, after []byte) (used int, ok bool) {
	name := string(words[0])
	if name == "quit" {
		s.err = errQuit
		return 0, true
	}
	size, isNumber := uint64(0), false
	if name == "set" && len(words) > 4 {
		size, isNumber = parseUint(words[4])
	}
	switch {
	case !isNumber:
		s.reply("CLIENT_ERROR unauthenticated")
		return 0, true
	case size > MaxToken:
		s.reply("CLIENT_ERROR auth token too long")
		return 0, true
	}
	used = int(size) + len(crlf)
	if len(after) < used {
		s.need = used
		return 0, false
	}
	user, password, isPair := bytes.Cut(after[:size], []byte(" "))
	switch {
	case !bytes.Equal(after[size:used], crlf):
		s.reply("CLIENT_ERROR bad command line termination")
	case !isPair:
		s.reply("CLIENT_ERROR bad authentication token format")
	default:
		s.known = s.options.Admits(user, password)
		if s.count(!s.known, authErrors, authCmds); s.known {
			s.reply("STORED")
			return used, true
		}
		s.reply("CLIENT_ERROR authentication failure")
		if s.failures++; s.failures > maxFailures {
			s.err = errRefused
		}
	}
	return used, true
}
