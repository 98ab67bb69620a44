package hashmap

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/test/child"
	"github.com/freehold-go/freehold/internal/test/filetest"
)

// OpenFrozen refuses a pipe. It does not wait for the other end.
func TestOpenFrozenOfAPipe(t *testing.T) {
	path := filepath.Join(filetest.TempDir(t), "pipe")
	filetest.Must(t, unix.Mkfifo(path, 0o600))
	// With the other end open, an OpenFrozen that does not look first reads the pipe's size instead.
	end := freehold.Must(os.OpenFile(path, os.O_RDWR, 0))
	defer end.Close()
	if _, err := OpenFrozen[int, int](path); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "no regular file") {
		t.Error(err)
	}
}

// Processes that read one frozen map have its pages once: the shares of all (Pss) are its size. They
// find each other's keys, long ones too, so they have one hash.
func TestProcessesShareAFrozenMap(t *testing.T) {
	const variable = "FREEHOLD_FROZEN_SHARED"
	const entries, processes = 20_000, 3
	key := func(i int) string { return fmt.Sprint("key ", i, strings.Repeat("k", i%200)) }
	if path := os.Getenv(variable); path != "" {
		f := openFrozen[string, uint64](t, path)
		for i := range entries {
			if v, ok, err := f.Get(key(i)); v != uint64(i) || !ok || err != nil {
				t.Fatal(i, v, ok, err)
			}
		}
		filetest.Must(t, f.Verify())
		fmt.Println("read")
		os.Stdin.Read(make([]byte, 1)) // until the parent closes it
		return
	}
	child.Need(t)
	path := filepath.Join(filetest.TempDir(t), "frozen")
	filetest.Must(t, Freeze(func(yield func(string, uint64) bool) {
		for i := 0; i < entries && yield(key(i), uint64(i)); i++ {
		}
	}, path))
	size := freehold.Must(os.Stat(path)).Size() >> 10
	var rss, pss int64
	var pids []int
	for range processes {
		cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), variable+"="+path)
		in, out := freehold.Must(cmd.StdinPipe()), freehold.Must(cmd.StdoutPipe())
		filetest.Must(t, cmd.Start())
		defer cmd.Wait()
		defer in.Close()
		lines := bufio.NewScanner(out)
		if lines.Scan(); lines.Text() != "read" {
			t.Fatalf("a process says %q", lines.Text())
		}
		pids = append(pids, cmd.Process.Pid)
	}
	for _, pid := range pids {
		smaps, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps", pid))
		if err != nil {
			t.Skip(err)
		}
		_, mapping, found := strings.Cut(string(smaps), path+"\n")
		if !found {
			t.Fatal("a process does not map the file")
		}
		for line := range strings.Lines(mapping) {
			var n int64
			if k, _ := fmt.Sscanf(line, "Rss: %d", &n); k == 1 {
				rss += n
			}
			if k, _ := fmt.Sscanf(line, "Pss: %d", &n); k == 1 {
				pss += n
				break
			}
		}
	}
	t.Logf("a file of %d KiB in %d processes: Rss %d KiB, Pss %d KiB", size, processes, rss, pss)
	if rss < processes*size || pss > size*11/10 {
		t.Errorf("Rss is %d KiB and Pss %d, want %d times %d and %d", rss, pss, processes, size, size)
	}
}

// A write error leaves the old file and no other.
func TestFreezeBeyondTheLimit(t *testing.T) {
	child.In(t, func() {
		path := filepath.Join(filetest.TempDir(t), "frozen")
		m := smallFrozen(t, path)
		for _, limit := range []uint64{0, frozenBlock + 1, 1 << 20} {
			filetest.Must(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: limit, Max: unix.RLIM_INFINITY}))
			err := Freeze(func(yield func(uint64, uint64) bool) {
				for i := uint64(0); i < 1e6 && yield(i, i); i++ {
				}
			}, path)
			filetest.Must(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}))
			if err == nil || !strings.Contains(err.Error(), "file too large") {
				t.Errorf("limit %d: %v", limit, err)
			}
			filetest.Must(t, wantTruth(t, path, m))
			wantFiles(t, path)
		}
	})
}

// A system call in View that accesses bytes that the file has lost, or writes to its memory, fails.
// View goes on.
func TestSystemCallsInView(t *testing.T) {
	path := filepath.Join(filetest.TempDir(t), "frozen")
	filetest.Must(t, Freeze(maps.All(map[string][]byte{"a": make([]byte, 64<<10)}), path))
	f := openFrozen[string, []byte](t, path)
	to, err := os.Create(path + "2")
	filetest.Must(t, err)
	defer to.Close()
	freehold.Must(to.WriteString("text"))
	var written, read error
	ok, err := f.View("a", func(v []byte) {
		_, read = to.ReadAt(v[:4], 0)
		filetest.Must(t, os.Truncate(path, frozenBlock))
		_, written = to.Write(v)
	})
	if !ok || err != nil || !errors.Is(read, unix.EFAULT) || !errors.Is(written, unix.EFAULT) {
		t.Errorf("View %t, %v; read into it: %v; written from it: %v", ok, err, read, written)
	}
}

// A file of holes takes little memory, although its header and the checksum of that are right. On 32
// bits it does not open, because it is larger than the address space.
func TestForgedFrozenOfHoles(t *testing.T) {
	path := filepath.Join(filetest.TempDir(t), "frozen")
	smallFrozen(t, path)
	header := freehold.Must(os.ReadFile(path))[:frozenBlock]
	sums := uint64(1 << 40)
	binary.LittleEndian.PutUint64(header[24:], 1) // buckets
	binary.LittleEndian.PutUint64(header[32:], sums-dataOffset(1))
	sum := crc32.Update(uint32(binary.LittleEndian.Uint64(header[40:])), castagnoli, header)
	file := freehold.Must(os.Create(path))
	defer file.Close()
	if err := file.Truncate(int64(sums + sums/frozenBlock*4)); err != nil {
		t.Skip(err)
	}
	freehold.Must(file.WriteAt(header, 0))
	freehold.Must(file.WriteAt(binary.LittleEndian.AppendUint32(nil, sum), int64(sums)))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if math.MaxInt == math.MaxInt32 {
		if _, err := OpenFrozen[string, string](path); err == nil {
			t.Error("a file larger than the address space is open")
		}
		return
	}
	f := openFrozen[string, string](t, path)
	if _, _, err := f.Get("key"); !errors.Is(err, ErrCorrupt) {
		t.Error(err)
	}
	if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 1<<20 {
		t.Errorf("%d bytes on the Go heap", after.TotalAlloc-before.TotalAlloc)
	}
}

// Freeze leaves no memory, and Close unmaps the file and closes it.
func TestFrozenClose(t *testing.T) {
	path := filepath.Join(filetest.TempDir(t), "frozen")
	before := freehold.Default().Stats().LiveBytes
	filetest.Must(t, Freeze(maps.All(map[int]int{1: 1}), path))
	if n := freehold.Default().Stats().LiveBytes - before; n > 0 {
		t.Errorf("Freeze leaves %d bytes", n)
	}
	f := openFrozen[int, int](t, path)
	file := f.file
	filetest.Must(t, f.Close())
	if err := file.Close(); !errors.Is(err, os.ErrClosed) {
		t.Error("the file was open:", err)
	}
	if smaps := freehold.Must(os.ReadFile("/proc/self/maps")); strings.Contains(string(smaps), path) {
		t.Error("the file is mapped")
	}
}
