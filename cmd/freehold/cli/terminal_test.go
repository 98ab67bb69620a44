//go:build unix

package cli

import (
	"io"
	"strings"
	"testing"

	"github.com/clipperhouse/displaywidth"
	"github.com/creack/pty"
)

func TestBarNeverWraps(t *testing.T) {
	t.Setenv("TERM", "xterm")
	const text = "cycle 10/10 settle  resident 12.3 GiB, live 12.3 GiB"
	for _, width := range []int{1, 2, 9, 20, 33, 40, 60, 79, 80, 81, 200} {
		screen, tty, err := pty.Open()
		if err != nil {
			t.Skipf("no terminal can be made here: %v", err)
		}
		if err := pty.Setsize(tty, &pty.Winsize{Rows: 24, Cols: uint16(width)}); err != nil {
			t.Fatal(err)
		}
		read := make(chan string)
		go func() {
			data, _ := io.ReadAll(screen) // an error once the other side has hung up
			read <- string(data)
		}()
		b := NewBar(tty, 0)
		b.Show(0.456, text)
		b.Show(1.5, text)
		b.Println(tty, "above")
		tty.Close()
		shown := strings.ReplaceAll(<-read, "\x1b[K", "")
		screen.Close()
		for frame := range strings.SplitSeq(shown, "\r") {
			if n := displaywidth.String(strings.TrimSuffix(frame, "\n")); n >= width && frame != "above" {
				t.Errorf("width %d: a bar takes %d: %q", width, n, frame)
			}
		}
		if width >= 9 && !strings.Contains(shown, "46%") || width >= 80 && !strings.Contains(shown, text) {
			t.Errorf("width %d: shown was %q", width, shown)
		}
		if !strings.HasSuffix(shown, "\rabove\r\n") {
			t.Errorf("width %d: the line above the bar: %q", width, shown)
		}
	}
	b := NewBar(io.Discard, 0)
	b.Show(0.5, text)
	b.Clear()
}
