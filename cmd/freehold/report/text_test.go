//go:build unix

package report

import (
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/creack/pty"
)

// On a terminal the last column stays free, a line takes 100 at most, and its text ten at least.
func TestWrapped(t *testing.T) {
	t.Setenv("TERM", "xterm")
	screen, tty, err := pty.Open()
	if err != nil {
		t.Skipf("no terminal can be made here: %v", err)
	}
	defer screen.Close()
	defer tty.Close()
	padding := regexp.MustCompile(` +(\n|$)`)
	for _, tt := range []struct {
		width      uint16
		line, want string
	}{
		{1, "It has reasons.", "- It has\n  reasons."},
		{18, "It has a reason.", "- It has a\n  reason."},
		{19, "It has a reason.", "- It has a reason."},
		{200, strings.Repeat("0123456 ", 13), "- " + strings.Repeat("0123456 ", 11) + "0123456\n  0123456"},
	} {
		if err := pty.Setsize(tty, &pty.Winsize{Rows: 24, Cols: tt.width}); err != nil {
			t.Fatal(err)
		}
		if got := padding.ReplaceAllString(Wrapped(tty, "- ", tt.line), "$1"); got != tt.want {
			t.Errorf("width %d: %q, want %q", tt.width, got, tt.want)
		}
	}
	if got := Wrapped(io.Discard, "- ", "It has a reason."); got != "- It has a reason." {
		t.Errorf("elsewhere: %q", got)
	}
}
