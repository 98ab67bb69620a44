//go:build !asan

package intern

import (
	"fmt"
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/internal/panics"
	"github.com/freehold-go/freehold/internal/poison"
)

// A write to a freed string is found when its memory is used again, or by Close.
func TestWritesToFreedStringsAreFound(t *testing.T) {
	defer poison.Set(true)()
	const text = "text of some length"
	for _, at := range []int{-1, len(text) - 1} { // in front of the text, and its last byte
		testWriteToAFreedString(t, text, at)
	}
}

func testWriteToAFreedString(t *testing.T, text string, at int) {
	for name, next := range map[string]func(s *Strings){
		"Intern": func(s *Strings) { s.Intern("the same length too") },
		"Close":  (*Strings).Close,
	} {
		t.Run(fmt.Sprint(name, at), func(t *testing.T) {
			s := New(alloctest.New(t), &Options{RefCounts: true})
			id := freehold.Must(s.Intern(text))
			v := s.Value(id)
			s.Release(id)
			b := (*byte)(unsafe.Add(unsafe.Pointer(unsafe.StringData(v)), at))
			was := *b
			*b = 'X'
			panics.Want(t, "freehold: intern: byte ... of the memory of a string was written after the string was freed", func() { next(s) })
			*b = was
			s.Close()
		})
	}
}
