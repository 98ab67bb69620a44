//go:build unix

package main

import (
	"io"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/creack/pty"
)

func TestBarNeverWraps(t *testing.T) {
	t.Setenv("TERM", "xterm")
	for _, width := range []int{1, 10, 40, 79, 80, 200} {
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
		bar := newBar(tty, 1234, "memory/16-1024 freehold-interface, and some more")
		bar.Add(1)
		bar.Finish()
		tty.Close()
		out := <-read
		screen.Close()
		if width >= 10 && !strings.Contains(out, "%") {
			t.Errorf("width %d: no bar was drawn: %q", width, out)
		}
		for frame := range strings.SplitSeq(out, "\r") {
			if n := ansi.StringWidth(frame); n >= width {
				t.Errorf("width %d: a bar takes %d: %q", width, n, frame)
			}
		}
	}
}
