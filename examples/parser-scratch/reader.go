// Reader: a JSON text, one value after the other.
//
//	{"a": [1, true]}    next(0)    an object
//	 ^                  next('}')  an array with the key a
//	       ^            next(']')  1
//	           ^        next(']')  true
//	               ^    next(']')  no more
//	                ^   next('}')  no more
//	                 ^  next(0)    no more
//
// It parses the grammar and allocates nothing: its results are parts of the text.
// The caller knows the enclosing value, so the reader keeps no stack.

package main

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth limits the nesting of arrays and objects, as in encoding/json.
const maxDepth = 10_000

// A Kind is the type of a value.
type Kind uint8

const (
	Null Kind = iota
	False
	True
	Number
	String
	Array
	Object
)

// A SyntaxError says where a text is not JSON.
type SyntaxError struct {
	Offset int // in bytes
	What   string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("offset %d: %s", e.Offset, e.What) }

// reader reads a text. After next returns true, kind, key, and text or number
// describe the value.
type reader struct {
	source string
	offset int // of the first unread byte
	depth  int // open arrays and objects
	opened bool
	err    error // the first error

	kind   Kind
	key    quoted
	text   quoted
	number float64
}

// quoted is the text between two quotes.
type quoted struct {
	raw   string
	plain bool // raw is the value: no escapes, and valid UTF-8
}

// next reads the next value of the array or object that ends with closing, or of
// the whole text if closing is 0. It reports false at the end and on an error. The
// caller reads an array or object to its end before the next value.
func (r *reader) next(closing byte) bool {
	first := r.opened || r.offset == 0
	r.opened, r.key = false, quoted{}
	c := r.peek()
	switch {
	case r.err != nil:
		return false
	case closing == 0:
		if !first {
			if r.offset < len(r.source) {
				r.expected("the end of the text")
			}
			return false
		}
	case c == closing:
		r.offset++
		r.depth--
		return false
	case !first:
		if c != ',' {
			return r.expected("',' or '" + string(rune(closing)) + "'")
		}
		r.offset++
		c = r.peek()
	}
	if closing == '}' {
		if c != '"' {
			return r.expected("a key")
		}
		if r.key = r.quoted(); r.err != nil {
			return false
		}
		if r.peek() != ':' {
			return r.expected("':' after the key")
		}
		r.offset++
		c = r.peek()
	}
	return r.value(c)
}

// value reads a value that begins with c. Of an array or object it reads the bracket.
func (r *reader) value(c byte) bool {
	switch c {
	case 'n':
		return r.word("null", Null)
	case 'f':
		return r.word("false", False)
	case 't':
		return r.word("true", True)
	case '"':
		r.kind = String
		r.text = r.quoted()
	case '[':
		return r.open(Array)
	case '{':
		return r.open(Object)
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		r.kind = Number
		r.numeral()
	default:
		return r.expected("a value")
	}
	return r.err == nil
}

func (r *reader) word(word string, k Kind) bool {
	if !strings.HasPrefix(r.source[r.offset:], word) {
		return r.expected(word)
	}
	r.offset += len(word)
	r.kind = k
	return true
}

func (r *reader) open(k Kind) bool {
	if r.depth == maxDepth {
		return r.fail(r.offset, fmt.Sprintf("more than %d arrays and objects in each other", maxDepth))
	}
	r.offset++
	r.depth++
	r.opened = true
	r.kind = k
	return true
}

// numeral reads a number.
func (r *reader) numeral() {
	from := r.offset
	r.accept('-')
	if !r.accept('0') && !r.digits() {
		return
	}
	if r.accept('.') && !r.digits() {
		return
	}
	if r.accept('e') || r.accept('E') {
		if !r.accept('+') {
			r.accept('-')
		}
		if !r.digits() {
			return
		}
	}
	var err error
	if r.number, err = strconv.ParseFloat(r.source[from:r.offset], 64); err != nil {
		r.fail(from, "the number is too large")
	}
}

// digits reads one or more digits.
func (r *reader) digits() bool {
	from := r.offset
	for r.offset < len(r.source) && r.source[r.offset]-'0' <= 9 {
		r.offset++
	}
	return r.offset > from || r.expected("a digit")
}

func (r *reader) accept(c byte) bool {
	if r.offset == len(r.source) || r.source[r.offset] != c {
		return false
	}
	r.offset++
	return true
}

// quoted reads a string from quote to quote.
func (r *reader) quoted() quoted {
	r.offset++
	from := r.offset
	q := quoted{plain: true}
	ascii := true
	for r.offset < len(r.source) {
		switch c := r.source[r.offset]; {
		case c == '"':
			q.raw = r.source[from:r.offset]
			q.plain = q.plain && (ascii || utf8.ValidString(q.raw))
			r.offset++
			return q
		case c < ' ':
			r.expected("'\"'")
			return quoted{}
		case c == '\\':
			q.plain = false
			if !r.escape() {
				return quoted{}
			}
		default:
			ascii = ascii && c < utf8.RuneSelf
			r.offset++
		}
	}
	r.fail(from-1, "the string does not end")
	return quoted{}
}

// escape reads an escape sequence.
func (r *reader) escape() bool {
	rest := r.source[r.offset+1:]
	switch {
	case rest == "" || strings.IndexByte(`"\/bfnrtu`, rest[0]) < 0:
		return r.fail(r.offset, `no escape that JSON has`)
	case rest[0] != 'u':
		r.offset += 2
		return true
	}
	if len(rest) < 5 || hex(rest[1:5]) < 0 {
		return r.fail(r.offset, `\u without four hexadecimal digits`)
	}
	r.offset += 6
	return true
}

// peek returns the next byte that is not a space, or 0 at the end of the text.
func (r *reader) peek() byte {
	for ; r.offset < len(r.source); r.offset++ {
		switch c := r.source[r.offset]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// expected fails with an error that says what was expected and what was found. It
// returns false, like fail.
func (r *reader) expected(what string) bool {
	found := "the text ends"
	if r.offset < len(r.source) {
		c, size := utf8.DecodeRuneInString(r.source[r.offset:])
		found = fmt.Sprintf("found %q", c)
		if c == utf8.RuneError && size == 1 {
			found = fmt.Sprintf("found byte %#x", r.source[r.offset])
		}
	}
	return r.fail(r.offset, "expected "+what+", "+found)
}

func (r *reader) fail(offset int, what string) bool {
	r.err = &SyntaxError{offset, what}
	return false
}

// unquotedBytes returns the maximum number of bytes that appendTo appends: an
// invalid byte becomes the three bytes of U+FFFD.
func (q quoted) unquotedBytes() int { return 3 * len(q.raw) }

// appendTo appends the value of q to dst.
func (q quoted) appendTo(dst []byte) []byte {
	for s := q.raw; s != ""; {
		if s[0] != '\\' {
			c, size := utf8.DecodeRuneInString(s)
			dst = utf8.AppendRune(dst, c)
			s = s[size:]
			continue
		}
		switch c := s[1]; c {
		case 'u':
			c := hex(s[2:6])
			s = s[6:]
			if len(s) >= 6 && s[:2] == `\u` {
				if pair := utf16.DecodeRune(c, hex(s[2:6])); pair != utf8.RuneError {
					c, s = pair, s[6:]
				}
			}
			dst = utf8.AppendRune(dst, c) // half a surrogate pair becomes U+FFFD
			continue
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		default: // quote, backslash and slash
			dst = append(dst, c)
		}
		s = s[2:]
	}
	return dst
}

// hex returns the value of four hexadecimal digits, or -1 if they are not.
func hex(digits string) (v rune) {
	for i := range 4 {
		c := digits[i] | 0x20 // in lower case
		switch {
		case c-'0' <= 9 && digits[i] == c:
			v = v<<4 | rune(c-'0')
		case c-'a' <= 5:
			v = v<<4 | rune(c-'a'+10)
		default:
			return -1
		}
	}
	return v
}
