package filetest

import (
	"bytes"
	"os"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// WantUnused reports an error for each file of a directory that the process has open or mapped.
func WantUnused(t testing.TB, dir string) {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	Must(t, err)
	for line := range strings.Lines(string(maps)) {
		if strings.Contains(line, dir+"/") {
			t.Error("still mapped: ", line)
		}
	}
	for _, to := range Open(t, dir) {
		t.Error("still open: ", to)
	}
}

// Open returns the names of a directory's files that the process has open, by their descriptors.
func Open(t testing.TB, dir string) map[string]string {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	Must(t, err)
	open := map[string]string{}
	for _, fd := range fds {
		if to, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && strings.HasPrefix(to, dir+"/") {
			open[fd.Name()] = to
		}
	}
	return open
}

// Watch watches a file or a directory for events. seen returns the names of the events so far.
func Watch(t testing.TB, path string, events uint32) (seen func() []string) {
	t.Helper()
	watch, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { unix.Close(watch) })
	_, err = unix.InotifyAddWatch(watch, path, events)
	Must(t, err)
	return func() (names []string) {
		got := make([]byte, 4096)
		n, err := unix.Read(watch, got)
		if err == unix.EAGAIN {
			return nil
		}
		Must(t, err)
		for got = got[:n]; len(got) > 0; {
			e := (*unix.InotifyEvent)(unsafe.Pointer(&got[0]))
			name := got[unix.SizeofInotifyEvent:][:e.Len]
			names = append(names, string(bytes.TrimRight(name, "\x00")))
			got = got[unix.SizeofInotifyEvent+e.Len:]
		}
		return names
	}
}

// Nobody is the ID of a user without root's rights.
const Nobody = 65534

// AsNobody calls f. If the process is root, f has the file access of Nobody.
func AsNobody(f func() error) error {
	if os.Getuid() != 0 {
		return f()
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked, so the thread ends with the goroutine
		if _, err := unix.SetfsuidRetUid(Nobody); err != nil {
			done <- err
			return
		}
		done <- f()
	}()
	return <-done
}
