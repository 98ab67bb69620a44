package extsort_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
)

// An input is lines that have broken sorts before.
type input struct {
	name string
	text string
}

// inputs returns all kinds of input, of about size bytes each where size matters.
func inputs(size int) []input {
	r := rand.New(rand.NewPCG(1, 2))
	lines := func(f func(i int) string) string {
		var b strings.Builder
		for i := 0; b.Len() < size; i++ {
			b.WriteString(f(i))
			b.WriteByte('\n')
		}
		return b.String()
	}
	reversed := func(s string) string {
		l := strings.SplitAfter(s, "\n")
		l = l[:len(l)-1]
		var b strings.Builder
		for i := range l {
			b.WriteString(l[len(l)-1-i])
		}
		return b.String()
	}
	sorted := lines(func(i int) string { return fmt.Sprintf("line %09d", i) })
	random := func(max int, of string) string {
		b := make([]byte, r.IntN(max+1))
		for i := range b {
			b[i] = of[r.IntN(len(of))]
		}
		return string(b)
	}
	every := make([]byte, 0, 255)
	for b := range 256 {
		if b != '\n' {
			every = append(every, byte(b))
		}
	}
	zipf := rand.NewZipf(r, 1.3, 1, 1e6)
	return []input{
		{"empty", ""},
		{"one record", "a\n"},
		{"two records", "b\na\n"},
		{"no final newline", "b\nc\na"},
		{"one record without newline", "a"},
		{"only newlines", strings.Repeat("\n", size/8)},
		{"NUL against nothing", "a\x00\na\na\x00\x00\n\x00\n\na\x00b\nab\n"},
		{"zeros that fill words", lines(func(int) string { return "a" + strings.Repeat("\x00", r.IntN(20)) })},
		{"any bytes", lines(func(int) string { return random(30, string(every)) })},
		{"two letters", lines(func(int) string { return random(40, "ab") })},
		{"CRLF", lines(func(int) string { return random(8, "abc") + "\r" })},
		{"random", lines(func(int) string { return fmt.Sprintf("%016x%016x", r.Uint64(), r.Uint64()) })},
		{"equal", lines(func(int) string { return "the same again" })},
		{"few distinct", lines(func(int) string { return fmt.Sprintf("value %d", r.IntN(100)) })},
		{"repeats that differ late", lines(func(int) string { return strings.Repeat("value 12", 1+r.IntN(2)) + random(1, "ab") })},
		{"sorted", sorted},
		{"reversed", reversed(sorted)},
		{"nearly sorted", lines(func(i int) string { return fmt.Sprintf("line %09d", i+r.IntN(5)) })},
		{"organ pipe", sorted[:len(sorted)/30*15] + reversed(sorted[:len(sorted)/30*15])},
		{"common prefix", lines(func(int) string { return strings.Repeat("p", 100) + fmt.Sprint(r.Uint32()) })},
		{"longer prefix than marks keep", lines(func(int) string { return strings.Repeat("p", 700) + fmt.Sprint(r.Uint32()%1000) })},
		{"bytes 7 to 9", lines(func(int) string { return "1234567" + random(3, "ab") + "tail" })},
		{"bytes 15 to 17", lines(func(int) string { return "123456781234567" + random(3, "ab") + "tail" })},
		{"each a prefix of the next", lines(func(i int) string { return strings.Repeat("x", i%1500) })},
		{"prefixes with tails", lines(func(i int) string { return strings.Repeat("x", i%60) + random(1+i%3, "axz") + random(12, "\x00x") })},
		{"most in one bucket", lines(func(i int) string {
			if i%100 == 0 {
				return random(20, "xyz")
			}
			return "a" + random(10, "abcdefgh")
		})},
		{"Zipf", lines(func(int) string { return fmt.Sprintf("word%d", zipf.Uint64()) })},
		{"all ones and zeros", lines(func(i int) string { return strings.Repeat(string("\xff\x00"[i%2]), r.IntN(12)) })},
		{"long lines", lines(func(int) string { return random(3000, "ab") + random(9000, "abcdef") })},
		{"one long line", random(30, "ab") + "\n" + strings.Repeat("long", 2000) + "\n" + random(30, "ab") + "\n"},
	}
}

// splitLines returns lines without their ends.
func splitLines(text string) [][]byte {
	if text == "" {
		return nil
	}
	return bytes.Split([]byte(strings.TrimSuffix(text, "\n")), []byte("\n"))
}
