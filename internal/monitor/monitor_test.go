package monitor

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/freehold-go/freehold/internal/guardlog"
)

const at = 1 << 24

// log returns the log of this process, mapped again, with a free block of 64 bytes.
func log(t *testing.T) *guardlog.Log {
	file := guardlog.Open()
	if file == nil {
		t.Skip("no shared memory")
	}
	id := guardlog.New(at-at%4096, 1<<14)
	id.Allocated(at, 64, "index")
	id.Freed()
	t.Cleanup(id.Closed)
	l, err := guardlog.Map(file)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// The address is found in whatever pieces the text comes, but not in a part of a line.
func TestWatch(t *testing.T) {
	l := log(t)
	what := fmt.Sprintf("\nfreehold: use after free at %#x: byte 8 of a block of 64 bytes of heap \"index\"", at+8)
	lead, report := what+"; the goroutine that did it comes first, and the stacks of the block last\n", what+"\nallocated at:\n"
	for _, tt := range []struct {
		text  string
		found bool
	}{
		{fmt.Sprintf("unexpected fault address %#x\nfatal error: fault\n[signal SIGSEGV: segmentation violation code=0x2 addr=%#x pc=0x48f0b5]\n\ngoroutine 1:\n", at+8, at+8), true},
		{fmt.Sprintf("panic: runtime error\n[signal SIGSEGV: segmentation violation code=0x1 addr=%#x pc=0x501532]\n", at+8), true},
		{fmt.Sprintf("panic: 1 addr=0x10 \n[signal SIGSEGV: segmentation violation code=0x1 addr=%#x pc=0x501532]\n", at+8), true},
		{fmt.Sprintf("panic: %#x\n", at+8), false},
		{"unexpected fault address 0x0\n", false},
		{"panic: addr=0x\naddr=0xfffffffffffffffffffffffff\n", false},
		{"", false},
		{strings.Repeat("x", 3*maxLine) + strings.Repeat("x\n", 100) + fmt.Sprintf("unexpected fault address %#x\n", at+8), true},
	} {
		for _, atOnce := range []bool{false, true} {
			for name, in := range map[string]io.Reader{
				"whole": strings.NewReader(tt.text), "bytes": iotest.OneByteReader(strings.NewReader(tt.text)),
			} {
				var out bytes.Buffer
				watch(in, l, &out, atOnce)
				got, led := out.String(), false
				if !atOnce {
					got, led = strings.CutPrefix(got, lead)
				}
				if led != (tt.found && !atOnce) || strings.HasPrefix(got, report) != tt.found || !tt.found && got != "" || strings.Count(got, "use after") > 1 {
					t.Errorf("%.200q, %s, at once %v: %q", tt.text, name, atOnce, out.String())
				}
				if _, freed, _ := strings.Cut(got, "\nfreed at:\n"); tt.found && strings.Contains(freed, "\n\n") || regexp.MustCompile(`(?m)^[^\t]`).MatchString(freed) {
					t.Errorf("the report does not end with the stacks: %q", got)
				}
			}
		}
	}
}

// What was hit is said before the rest of the text is read. The report comes in the end, or at
// once, if the reader may not get there. Then no more is read than needed.
func TestWhenTheReportComes(t *testing.T) {
	l := log(t)
	for _, atOnce := range []bool{false, true} {
		var out bytes.Buffer
		lines := 0
		in := readerFunc(func(p []byte) (int, error) {
			if atOnce && len(p) > maxRead {
				t.Errorf("%d bytes are asked for", len(p))
			}
			if lines++; lines > 2 {
				return 0, io.EOF
			}
			text := out.String()
			if said, printed := strings.Contains(text, "use after"), strings.Contains(text, "allocated at:"); said != (lines == 2) || printed != (atOnce && lines == 2) {
				t.Errorf("at once %v: before line %d there is %q", atOnce, lines, text)
			}
			return copy(p, fmt.Sprintf("unexpected fault address %#x\n", at+8)), nil
		})
		watch(in, l, &out, atOnce)
		if strings.Count(out.String(), "allocated at:") != 1 {
			t.Errorf("at once %v: %q", atOnce, out.String())
		}
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
