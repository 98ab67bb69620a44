package main

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/cache"
)

func TestCopy(t *testing.T) {
	long := strings.Repeat("x", 3<<20)
	d := NewDedup(alloctest.New(t), 1<<20, time.Hour)
	defer d.Close()
	var out strings.Builder
	in := "disk 7 is slow\nuser 12 came\ndisk 815 is slow\n\nuser 13 left\nuser 1x3\n" + long + "\n\nlast"
	if err := d.Copy(&out, iotest.OneByteReader(strings.NewReader(in))); err != nil {
		t.Fatal(err)
	}
	if d.IsNew([]byte(long[:2<<20])) {
		t.Error("a long line is new twice")
	}
	if want := "disk 7 is slow\nuser 12 came\n\nuser 13 left\nuser 1x3\n" + long[:1<<20] + "\nlast"; out.String() != want {
		t.Errorf("%.80q…", out.String())
	}
	if d.lines != 10 || d.repeated != 3 {
		t.Errorf("%d lines, %d repeated", d.lines, d.repeated)
	}
	if err := d.Copy(io.Discard, iotest.ErrReader(io.ErrUnexpectedEOF)); err != io.ErrUnexpectedEOF {
		t.Errorf("of a failing input: %v", err)
	}
}

// A line is new again after the time, and the memory stays bounded whatever comes.
func TestTimeAndMemory(t *testing.T) {
	memory := alloctest.New(t)
	synctest.Test(t, func(t *testing.T) {
		d := NewDedup(freehold.Pages(), cache.MinBytes, time.Minute)
		defer d.Close()
		for _, tt := range []struct {
			wait  time.Duration
			isNew bool
		}{{0, true}, {58 * time.Second, false}, {3 * time.Second, true}} {
			time.Sleep(tt.wait)
			if got := d.IsNew([]byte("a line")); got != tt.isNew {
				t.Errorf("after %v: new %v", tt.wait, got)
			}
		}
	})
	d := NewDedup(memory, cache.MinBytes, time.Hour)
	defer d.Close()
	for i := range 100_000 {
		d.IsNew([]byte(strings.Repeat(string(rune('a'+i%26)), i%100) + fmt.Sprintf("%x", i)))
	}
	if st := d.seen.Stats(); st.Evicted == 0 {
		t.Error("100,000 lines fit")
	}
}

// Lines that repeat stay while many other lines come once.
func TestRepeatedLinesStay(t *testing.T) {
	d := NewDedup(freehold.Pages(), cache.MinBytes, time.Hour)
	defer d.Close()
	again, asked := 0, 0
	for i := range 100_000 {
		d.IsNew(fmt.Appendf(nil, "once %c%c%c%c", 'a'+i%26, 'a'+i/26%26, 'a'+i/676%26, 'a'+i/17576))
		if i%10 > 0 {
			continue
		}
		asked++
		if d.IsNew(fmt.Appendf(nil, "often %c%c", 'a'+i/10%26, 'a'+i/260%4)) {
			again++
		}
	}
	if again > asked/20 {
		t.Errorf("%d of %d repeated lines are new", again, asked)
	}
}

// onGoHeap is IsNew with a Go map, which grows without a bound.
type onGoHeap map[string]time.Time

func (m onGoHeap) IsNew(line []byte) bool {
	last, found := m[string(line)]
	if found && time.Since(last) < time.Hour {
		return false
	}
	m[string(line)] = time.Now()
	return true
}

func BenchmarkIsNew(b *testing.B) {
	line := func(i int) []byte {
		return fmt.Appendf(nil, "request %x of a client took too long", i*0x9e3779b9&(1<<22-1))
	}
	b.Run("memory=Go", func(b *testing.B) {
		m := onGoHeap{}
		for i := 0; b.Loop(); i++ {
			m.IsNew(line(i))
		}
	})
	b.Run("memory=freehold", func(b *testing.B) {
		d := NewDedup(freehold.Pages(), 64<<20, time.Hour)
		defer d.Close()
		for i := 0; b.Loop(); i++ {
			d.IsNew(line(i))
		}
	})
}
