//go:build unix

package main

import (
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/creack/pty"
)

// terminal returns the program's side of a terminal that is so many characters
// wide, and a function that hangs up and returns all that was written there.
func terminal(t *testing.T, width int) (tty *os.File, hangUp func() string) {
	t.Helper()
	t.Setenv("TERM", "xterm")
	screen, tty, err := pty.Open()
	if err != nil {
		t.Skipf("no terminal can be made here: %v", err)
	}
	if err := pty.Setsize(tty, &pty.Winsize{Rows: 24, Cols: uint16(width)}); err != nil {
		t.Fatal(err)
	}
	read := make(chan string)
	go func() {
		data, _ := io.ReadAll(screen) // an error once everyone has hung up
		read <- string(data)
	}()
	return tty, func() string {
		tty.Close()
		text := <-read
		screen.Close()
		return strings.ReplaceAll(text, "\r\n", "\n")
	}
}

// frames returns what was written over itself: the states of a progress line.
func frames(text string) (all []string) {
	for line := range strings.Lines(text) {
		all = append(all, strings.Split(strings.TrimSuffix(line, "\n"), "\r")[1:]...)
	}
	return all
}

func TestProgressNeverWraps(t *testing.T) {
	const text = "cycle 10/10 settle  resident 12.3 GiB, live 12.3 GiB"
	for _, width := range []int{1, 2, 9, 20, 33, 40, 60, 79, 80, 81, 200} {
		tty, hangUp := terminal(t, width)
		p := newProgress(tty)
		p.show(0.456, text)
		p.close()
		shown := ""
		for _, frame := range frames(hangUp()) {
			if n := ansi.StringWidth(frame); n >= width {
				t.Errorf("width %d: a progress line takes %d: %q", width, n, frame)
			}
			shown += ansi.Strip(frame)
		}
		if width >= 9 && !strings.Contains(shown, "%") {
			t.Errorf("width %d: no progress was shown: %q", width, shown)
		}
		if width >= 80 && !strings.Contains(shown, text) {
			t.Errorf("width %d: the text is cut: %q", width, shown)
		}
	}
}

func TestTerminalOf80Columns(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		append([]string{"demo", "--backend", strings.Join(contenderNames(), ",")}, tinyDemo...),
		append(tinyRun, "--settle", "200ms"),
	} {
		tty, hangUp := terminal(t, 80)
		cmd := exec.CommandContext(t.Context(), exe, args...)
		cmd.Stdout, cmd.Stderr = tty, tty
		failed := cmd.Run()
		out := hangUp()
		if failed != nil {
			t.Fatalf("%v: %v:\n%s", args, failed, out)
		}
		checkWidth(t, out, 80)
	}
}

// Where there is no terminal, sentences are lines and tables fit the usual one.
func TestTablesFitWhenPiped(t *testing.T) {
	backends := strings.Join(contenderNames(), ",")
	for _, args := range [][]string{append([]string{"demo", "--backend", backends}, tinyDemo...), tinyRun} {
		code, out, errs := command(t.Context(), args...)
		if code != 0 {
			t.Fatalf("exit code %d: %s", code, errs)
		}
		tables, rest := "", 0
		for line := range strings.Lines(out) {
			if strings.HasPrefix(line, "   ") || strings.HasPrefix(line, "  ─") {
				tables += line
			} else {
				rest++
			}
		}
		if strings.Count(tables, "─\n") < 2 || rest == 0 {
			t.Errorf("%v: no tables in:\n%s", args, out)
		}
		checkWidth(t, tables, 80)
	}
}
