package main

import (
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/freehold-go/freehold/cmalloc"
	"github.com/freehold-go/freehold/cmd/freehold/cli"
)

// A backend's figures are its own: under each name is the malloc of that name,
// or an error that says what is there instead.
func TestBackendsOfCAreHonest(t *testing.T) {
	is, _ := cmalloc.Implementation()
	for name, wants := range map[string]string{"libc": "glibc libc", "jemalloc": "jemalloc"} {
		b, err := openCHeap(name, 0)
		honest := is != "" && strings.Contains(" "+wants+" ", " "+is+" ")
		if honest != (err == nil) {
			t.Errorf("%s on %q: %v", name, is, err)
		}
		var unavailable unavailableError
		if err != nil {
			if !errors.As(err, &unavailable) || !strings.HasPrefix(err.Error(), name+": ") {
				t.Errorf("%s on %q: the error is %v", name, is, err)
			}
			continue
		}
		chunk, err := b.alloc(100)
		if err != nil || len(chunk) != 100 {
			t.Errorf("%s: %d bytes, %v", name, len(chunk), err)
		}
		b.free(chunk)
		b.close()
	}
}

func TestWithoutCgoIsSaid(t *testing.T) {
	if _, err := cmalloc.New(); err == nil {
		t.Skip("this build has cgo")
	}
	for _, name := range []string{"libc", "jemalloc"} {
		code, out, errs := command(t.Context(), append(tinyRun, "--backend", name)...)
		if code != cli.Misused || out != "" || !strings.Contains(errs, name+": ") || !strings.Contains(errs, "CGO_ENABLED=1") {
			t.Errorf("%s: exit code %d, %q, %q", name, code, out, errs)
		}
	}
}

// A library that is asked for and not there must not pass for another one.
func TestPreloadThatTakesNoEffect(t *testing.T) {
	is, _ := cmalloc.Implementation()
	if runtime.GOOS != "linux" || is == "" || is == "jemalloc" || os.Getenv(preloadVariable) != "" {
		t.Skipf("malloc is %q here", is)
	}
	env := []string{preloadVariable + "=/nowhere/" + jemallocLibrary}
	code, out, errs := commandProcess(t, env, append(tinyRun, "--backend", "jemalloc")...)
	if code != cli.Misused || out != "" || !strings.Contains(errs, "lab: jemalloc: malloc is "+is) {
		t.Errorf("exit code %d, %q, %q", code, out, errs)
	}
	env = []string{preloadVariable + "="}
	if code, _, errs := commandProcess(t, env, append(tinyRun, "--backend", "libc")...); code != 0 && is == "glibc" {
		t.Errorf("libc: exit code %d, %q", code, errs)
	}
}
