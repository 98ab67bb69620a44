// Sort keys: a part of a line as bytes in the order of GNU sort -k.
//
// No key is a prefix of another one, so several keys can follow each other: text ends with 0, and
// a 0 or 1 in it is escaped by a 1. Inverted bytes reverse the order.

package gnu

import (
	"math"
	"strconv"
	"strings"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
)

// ordering has GNU sort's ordering options.
type ordering struct {
	startBlanks, endBlanks bool // -b of the first and of the second place: skip blanks there
	fold                   bool // -f
	dictionary             bool // -d
	printable              bool // -i
	numeric                bool // -n
	reverse                bool // -r
}

// A key is the part of a line from field and char to toField and toChar, counted from 0.
type key struct {
	ordering
	field, char     int
	toField, toChar int // the first toChar characters of toField, or all of toField-1 if toChar is 0
	tab             int // the separator; -1: a field begins with the blanks before it
}

const endOfLine = math.MaxInt

const wrongOptions = "its options are of b, d, f, i, n and r; GNU sort's g, h, M, R and V are not there"

// parseKey reads F[.C][OPTS][,F[.C][OPTS]].
func parseKey(text string) (key, error) {
	k := key{toField: endOfLine}
	fail := func(what string) (key, error) {
		return k, cli.Usagef("-k %s: %s; a key is F[.C][OPTS][,F[.C][OPTS]] with F and C from 1, such as 2,2n", text, what)
	}
	from, to, hasTo := strings.Cut(text, ",")
	n, rest, ok := leadingNumber(from)
	if !ok {
		return fail("a number is missing at the beginning")
	}
	if strings.HasPrefix(rest, ":") {
		return fail("OFFSET:LENGTH is a key of --fixed")
	}
	if n == 0 {
		return fail("fields are counted from 1")
	}
	k.field = n - 1
	if after, dot := strings.CutPrefix(rest, "."); dot {
		if n, rest, ok = leadingNumber(after); !ok {
			return fail("a number is missing after the period")
		}
		if n == 0 {
			return fail("characters are counted from 1")
		}
		k.char = n - 1
	}
	if !k.addOptions(rest, &k.startBlanks) {
		return fail(wrongOptions)
	}
	if !hasTo {
		return k, nil
	}
	if n, rest, ok = leadingNumber(to); !ok {
		return fail("a number is missing after the comma")
	}
	if n == 0 {
		return fail("fields are counted from 1")
	}
	k.toField = n
	if after, dot := strings.CutPrefix(rest, "."); dot {
		if k.toChar, rest, ok = leadingNumber(after); !ok {
			return fail("a number is missing after the period")
		}
		if k.toChar != 0 {
			k.toField--
		}
	}
	if !k.addOptions(rest, &k.endBlanks) {
		return fail(wrongOptions)
	}
	return k, nil
}

// leadingNumber reads decimal digits after blanks and a plus, as GNU sort does. It returns a large
// number for one that does not fit.
func leadingNumber(s string) (n int, rest string, ok bool) {
	s = strings.TrimPrefix(strings.TrimLeft(s, " \t\n\v\f\r"), "+")
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	n, err := strconv.Atoi(s[:i])
	if i > 0 && err != nil {
		n = endOfLine / 2
	}
	return n, s[i:], i > 0
}

// addOptions reads ordering options. A b sets *blanks.
func (k *key) addOptions(s string, blanks *bool) bool {
	for _, c := range s {
		switch c {
		case 'b':
			*blanks = true
		case 'd':
			k.dictionary = true
		case 'f':
			k.fold = true
		case 'i':
			k.printable = true
		case 'n':
			k.numeric = true
		case 'r':
			k.reverse = true
		default:
			return false
		}
	}
	return true
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' }

// find returns the key's part of a line.
func (k *key) find(line []byte) []byte {
	from := k.skipFields(line, 0, k.field, false)
	if k.startBlanks {
		from = skipBlanks(line, from)
	}
	from = min(len(line), from+min(k.char, len(line)))
	if k.toField == endOfLine {
		return line[from:]
	}
	to := k.skipFields(line, 0, k.toField, k.toChar == 0)
	if k.toChar != 0 {
		if k.endBlanks {
			to = skipBlanks(line, to)
		}
		to = min(len(line), to+min(k.toChar, len(line)))
	}
	return line[from:max(from, to)]
}

// skipFields returns the offset where the nth field after offset at begins or, for the end of a
// key, where the field before it ends.
func (k *key) skipFields(line []byte, at, n int, toEnd bool) int {
	for ; n > 0 && at < len(line); n-- {
		if k.tab < 0 {
			at = skipBlanks(line, at)
			for at < len(line) && !isBlank(line[at]) {
				at++
			}
			continue
		}
		for at < len(line) && line[at] != byte(k.tab) {
			at++
		}
		if at < len(line) && !(toEnd && n == 1) {
			at++
		}
	}
	return at
}

func skipBlanks(line []byte, at int) int {
	for at < len(line) && isBlank(line[at]) {
		at++
	}
	return at
}

// keyFunc returns the function that makes the keys of lines. The caller may reverse the whole order
// afterwards.
func keyFunc(keys []key, reversed bool) func(dst, line []byte) []byte {
	if k := keys[0]; len(keys) == 1 && k.isPlain() && k.reverse == reversed {
		return func(_, line []byte) []byte { return k.find(line) }
	}
	return func(dst, line []byte) []byte {
		for i := range keys {
			k := &keys[i]
			from := len(dst)
			if k.numeric {
				dst = appendNumber(dst, k.find(line))
			} else {
				dst = k.appendText(dst, k.find(line))
			}
			if k.reverse != reversed {
				invert(dst[from:])
			}
		}
		return dst
	}
}

// isPlain reports whether the key is its part of the line, unchanged.
func (k *key) isPlain() bool { return !k.numeric && !k.fold && !k.dictionary && !k.printable }

// appendText appends the key of text.
func (k *key) appendText(dst, text []byte) []byte {
	for _, c := range text {
		switch {
		case k.dictionary: // implies printable, except for the tab
			if !isDictionary(c) {
				continue
			}
		case k.printable:
			if c < ' ' || c > '~' {
				continue
			}
		}
		if k.fold && c >= 'a' && c <= 'z' {
			c -= 'a' - 'A'
		}
		if c <= 1 {
			dst = append(dst, 1, c+1)
			continue
		}
		dst = append(dst, c)
	}
	return append(dst, 0)
}

func isDictionary(c byte) bool {
	return isBlank(c) || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func invert(b []byte) {
	for i := range b {
		b[i] = ^b[i]
	}
}
