// Named pipes as inputs and outputs of freehold sort.

//go:build unix

package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
)

// Inputs are opened in turn: one writer may fill one pipe after the other.
func TestSortOfPipesInTurn(t *testing.T) {
	dir := t.TempDir()
	var pipes []string
	for _, name := range []string{"a", "b", "c"} {
		pipes = append(pipes, filepath.Join(dir, name))
		if err := syscall.Mkfifo(pipes[len(pipes)-1], 0o600); err != nil {
			t.Skip(err)
		}
	}
	const lines = 100_000 // more than a pipe holds
	go func() {
		for _, pipe := range pipes {
			if err := os.WriteFile(pipe, []byte(strings.Repeat(filepath.Base(pipe)+"\n", lines)), 0); err != nil {
				t.Error(err)
			}
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	code, out, errs := sortCommandOf(ctx, "", pipes...)
	if want := strings.Repeat("a\n", lines) + strings.Repeat("b\n", lines) + strings.Repeat("c\n", lines); code != 0 || out != want {
		t.Errorf("exit code %d, %d bytes, %s", code, len(out), errs)
	}
}

// A sort that waits for the other end of a pipe ends by one signal.
func TestInterruptWhileAPipeIsOpened(t *testing.T) {
	for _, option := range []string{"-s", "-m", "-c", "-o"} {
		t.Run(option, func(t *testing.T) {
			t.Parallel()                               // each waits for the seconds that a sort has to end
			pipe := filepath.Join(t.TempDir(), "pipe") // its own: who waited for the last one may still open it
			if err := syscall.Mkfifo(pipe, 0o600); err != nil {
				t.Skip(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer time.AfterFunc(100*time.Millisecond, cancel).Stop()
			code := make(chan int)
			go func() {
				got, _, _ := sortCommandOf(ctx, "a\n", option, pipe)
				code <- got
			}()
			select {
			case got := <-code:
				if got != cli.Interrupted {
					t.Errorf("exit code %d, want %d", got, cli.Interrupted)
				}
			case <-time.After(5 * time.Minute):
				t.Error("it still waits")
			}
			// Who waits goes on, and finds nothing.
			if other, err := os.OpenFile(pipe, os.O_RDWR|syscall.O_NONBLOCK, 0); err == nil {
				defer other.Close()
			}
		})
	}
}
