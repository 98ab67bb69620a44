package monitor

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// What others gave a variable of the monitor's does not count.
func TestEnvironment(t *testing.T) {
	given := []string{"A=1", variable + "=1", "GOGC=50", "GOGCX=2", "odd", "FREEHOLD_DEBUG=guard", "=C:=x", "FREEHOLD_DEBUG=leak"}
	was := slices.Clone(given)
	got := environment(given, variable+"=watch", "GOGC=off", "FREEHOLD_DEBUG=")
	want := []string{variable + "=watch", "GOGC=off", "FREEHOLD_DEBUG=", "A=1", "GOGCX=2", "odd", "=C:=x"}
	if !slices.Equal(got, want) || !slices.Equal(given, was) {
		t.Errorf("%q, want %q", got, want)
	}
}

// While the monitor of process 1 starts, no piece with the address is lost. Later the process
// waits: it is never further ahead of the monitor than a part of a crash text.
func TestSocketHoldsTheFirstPieces(t *testing.T) {
	crash, far, err := socketFiles()
	if err != nil {
		t.Fatal(err)
	}
	defer crash.Close()
	defer far.Close()
	const piece, first, most = "runtime.", 40, 200
	written := 0
	for ; written <= most; written++ {
		if _, err = unix.Write(int(crash.Fd()), []byte(piece)); err != nil {
			break
		}
	}
	if written < first || written > most || !errors.Is(err, unix.EAGAIN) {
		t.Errorf("%d pieces are written unread, then %v", written, err)
	}
	crash.Close()
	if text, err := io.ReadAll(far); string(text) != strings.Repeat(piece, written) {
		t.Errorf("%q of %d pieces, %v", text, written, err)
	}
}
