//go:build unix

package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/clipperhouse/displaywidth"
	"github.com/creack/pty"
	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"github.com/freehold-go/freehold/track/web"
)

// watchPage runs freehold stats on a terminal of 60 by 24, against a page that calls hook
// before each answer with its number. It returns the output.
func watchPage(t *testing.T, hook func(answer int32, w http.ResponseWriter), cancel context.CancelFunc, ctx context.Context) (code int, screen, errs string) {
	t.Helper()
	var answers atomic.Int32
	page := web.Handler()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hook(answers.Add(1), w)
		page.ServeHTTP(w, r)
	}))
	defer s.Close()
	defer cancel()
	t.Setenv("TERM", "xterm")
	theirs, tty, err := pty.Open()
	if err != nil {
		t.Skipf("no terminal can be made here: %v", err)
	}
	if err := pty.Setsize(tty, &pty.Winsize{Rows: 24, Cols: 60}); err != nil {
		t.Fatal(err)
	}
	read := make(chan string)
	go func() {
		data, _ := io.ReadAll(theirs) // an error once everyone has hung up
		read <- string(data)
	}()
	var e bytes.Buffer
	code = run(ctx, []string{"stats", "-i", "1ms", s.URL}, cli.Streams{Out: tty, Err: &e})
	tty.Close()
	text := <-read
	theirs.Close()
	return code, strings.ReplaceAll(text, "\r\n", "\n"), e.String()
}

// On a terminal each answer replaces the one before, cut to the screen.
func TestStatsRedrawsATerminal(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	code, screen, errs := watchPage(t, func(answer int32, _ http.ResponseWriter) {
		if answer == 4 {
			cancel()
		}
	}, cancel, ctx)
	if code != cli.OK || errs != "" {
		t.Errorf("code %d, %q, want an end without a word", code, errs)
	}
	frames := strings.Split(screen, "\x1b[H")[1:]
	if len(frames) < 3 || strings.Count(screen, "\x1b[2J") != 1 {
		t.Fatalf("%d frames: %q", len(frames), screen)
	}
	for i, f := range frames {
		lines := strings.Split(strings.TrimSuffix(strings.NewReplacer("\x1b[K", "", "\x1b[J", "").Replace(f), "\n"), "\n")
		if len(lines) > 23 {
			t.Errorf("frame %d has %d lines", i, len(lines))
		}
		for _, line := range lines {
			if displaywidth.String(line) > 59 {
				t.Errorf("frame %d has the line %q", i, line)
			}
		}
		if !strings.Contains(f, "  purged") {
			t.Errorf("frame %d has not all columns of a heap: %q", i, f)
		}
		if !strings.Contains(f, "\x1b[K\n") || !strings.HasSuffix(f, "\x1b[J") {
			t.Errorf("frame %d leaves parts of the one before: %q", i, f)
		}
	}
}

// A process that ends meanwhile is an error, and its last figures stay on the screen.
func TestStatsSaysThatTheProcessHasEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	code, screen, errs := watchPage(t, func(answer int32, w http.ResponseWriter) {
		if answer > 2 {
			panic(http.ErrAbortHandler)
		}
	}, cancel, ctx)
	if code != cli.Failed || !strings.HasPrefix(errs, "freehold: the process has ended, or answers no more: http://127.0.0.1:") {
		t.Errorf("code %d, %q", code, errs)
	}
	if !strings.Contains(screen, "off-heap ") {
		t.Errorf("drawn: %q", screen)
	}
}
