// Programs with one mistake: the environment tells this test binary to be one of them.

//go:build !race

package track_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"sync"
	"syscall"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/cache"
	"github.com/freehold-go/freehold/internal/guardlog"
	"github.com/freehold-go/freehold/track"
)

func init() {
	if name := os.Getenv("TRACK_MISTAKE"); name != "" {
		makeMistake(name)
		os.Exit(0)
	}
}

var sink byte

//go:noinline
func makeBlock(h *freehold.Heap, size int) []byte {
	b, err := h.Alloc(size, 8)
	if err != nil {
		panic(err)
	}
	return b
}

//go:noinline
func freeBlock(h *freehold.Heap, b []byte) { h.Free(b) }

// beyond returns b extended by n bytes behind its end.
func beyond(b []byte, n int) []byte { return unsafe.Slice(unsafe.SliceData(b), len(b)+n) }

func block() { select {} }

// stopMonitor stops the monitor of this process and returns its process ID.
func stopMonitor() int {
	log, err := guardlog.Open().Stat()
	if err != nil {
		panic(err)
	}
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range processes {
		if line, _ := os.ReadFile(dir + "/cmdline"); string(line) != "freehold-monitor\x00" {
			continue
		}
		if file, err := os.Stat(dir + "/fd/4"); err == nil && os.SameFile(file, log) {
			pid, _ := strconv.Atoi(filepath.Base(dir))
			if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
				panic(err)
			}
			return pid
		}
	}
	panic("no monitor")
}

func makeMistake(name string) {
	if name == "program" {
		// As FREEHOLD_DEBUG=guard does.
		track.SetGuardRate(1, 0)
		if err := track.StartMonitor(); err != nil {
			fmt.Println(err)
		}
		name = "read"
	}
	h := freehold.NewHeap(&freehold.HeapOptions{Name: "index"})
	b := makeBlock(h, 64)
	switch name {
	case "none":
	case "stopped monitor":
		fmt.Println(stopMonitor())
		if os.Getpid() != 1 {
			for range 1000 { // to make the crash text long
				go block()
			}
		}
		freeBlock(h, b)
		sink = b[8]
	case "exec":
		env := append([]string{"TRACK_MISTAKE=after exec", "FREEHOLD_DEBUG="}, os.Environ()...)
		panic(syscall.Exec("/proc/self/exe", os.Args, env))
	case "after exec":
		_, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		fmt.Println("children:", err)
	case "read":
		freeBlock(h, b)
		sink = b[8]
	case "write":
		freeBlock(h, b)
		b[8] = 1
	case "goroutine":
		freeBlock(h, b)
		var wg sync.WaitGroup
		wg.Go(func() { sink = b[8] })
		wg.Wait()
	case "copy":
		freeBlock(h, b)
		copy(make([]byte, 100), b[8:])
	case "overflow":
		beyond(b, 1)[64] = 1
	case "overflow in copy":
		copy(beyond(b, 100), make([]byte, 100))
	case "underflow":
		*(*byte)(unsafe.Add(unsafe.Pointer(&b[0]), -8000)) = 1
	case "underflow by one":
		*(*byte)(unsafe.Add(unsafe.Pointer(&b[0]), -1)) = 1
		freeBlock(h, b)
	case "panic":
		freeBlock(h, b)
		debug.SetPanicOnFault(true)
		sink = b[8]
	case "recovered":
		freeBlock(h, b)
		debug.SetPanicOnFault(true)
		defer func() {
			fmt.Println(track.Explain(recover()))
		}()
		sink = b[8]
	case "kept View":
		var kept []byte
		c := cache.New(h, &cache.Options{MaxBytes: cache.MinBytes})
		_ = c.Set([]byte("key"), make([]byte, 64))
		c.View([]byte("key"), func(e cache.Entry) { kept = e.Value })
		sink = kept[8]
	case "double free":
		freeBlock(h, b)
		freeBlock(h, b)
	case "closed":
		h.Close()
		sink = b[8]
	case "nil":
		var p *int
		*p = 1
	case "EFAULT":
		freeBlock(h, b)
		file, err := os.Open("/dev/zero")
		if err != nil {
			panic(err)
		}
		if _, err := file.Read(b); err == nil || err.(*os.PathError).Err != syscall.EFAULT {
			panic(err)
		}
		fmt.Println(track.ExplainPointer(unsafe.Pointer(&b[0])))
	}
}
