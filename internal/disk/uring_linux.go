//go:build linux && (amd64 || arm64 || loong64 || ppc64le || riscv64)

// Uring: reads by io_uring. The ring of this package is the file, a ring of regions.
//
//	submit: entries of several goroutines -> submission queue -> one io_uring_enter -> kernel
//	kernel: completion queue -> eventfd -> Go's poller -> reap -> the goroutine that waits
//
// A blocking pread keeps its processor (P) of Go's scheduler until the monitor thread takes it
// away, so a few readers starve all other goroutines. With io_uring the goroutine waits and no
// thread blocks.
//
// A call of io_uring_enter takes a third of a disk hit's processor time, and little more if it
// submits several reads. So a goroutine that submits a read while others are under way yields first.
// The goroutines that run meanwhile add their reads, and one call submits all (group commit).

package disk

import (
	"cmp"
	"errors"
	"io"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The kernel's interface: include/uapi/linux/io_uring.h.
type (
	uringParams struct {
		sqEntries, cqEntries, flags, threadCPU, threadIdle, features, queue uint32
		_                                                                   [3]uint32
		sq                                                                  struct {
			head, tail, mask, entries, flags, dropped, array, _ uint32
			_                                                   uint64
		}
		cq struct {
			head, tail, mask, entries, overflow, cqes, flags, _ uint32
			_                                                   uint64
		}
	}
	submission struct {
		op, flags      uint8
		priority       uint16
		fd             int32
		offset         uint64
		addr           uint64
		length, rwFlag uint32
		user           uint64
		_              [3]uint64
	}
	completion struct {
		user   uint64
		result int32
		flags  uint32
	}
)

const _ = -(unsafe.Sizeof(uringParams{}) ^ 120) - (unsafe.Sizeof(submission{}) ^ 64) - (unsafe.Sizeof(completion{}) ^ 16)

const (
	uringEntries    = 256
	mostGathered    = 16 // reads that one goroutine submits for the others
	opRead          = 22
	featSingleMap   = 1 << 0
	mapSubmissions  = 0x10000000
	registerEventFD = 4
)

// A uring is an io_uring that reads one file.
//
// submitting guards the submission queue, and reaping the completion queue. The kernel shares the
// heads and tails of both, so they are loaded and stored atomically. The kernel moves sqHead only in
// io_uring_enter, so under submitting.
type uring struct {
	fd     int
	file   *os.File
	target int32  // file's descriptor
	direct bool   // file bypasses the page cache
	rings  []byte // the mapping of both queues
	slots  []byte // the mapping of submissions

	submitting     sync.Mutex
	gathers        bool // a goroutine has yielded, and will submit the queue's entries
	sqHead, sqTail *uint32
	sqMask         uint32
	sqArray        []uint32
	submissions    []submission
	reaping        sync.Mutex
	cqHead, cqTail *uint32
	cqMask         uint32
	completions    []completion
	results        [uringEntries]chan int32 // of the reads that are under way
	free           chan uint32              // indexes of results without a read
	event          *os.File
	reaped         chan struct{} // closed when reapEvents has ended
}

// newUring returns a uring for f, or an error if the system has no io_uring or refuses it. direct
// says that f bypasses the page cache (O_DIRECT).
func newUring(f *os.File, direct bool) (_ reader, err error) {
	var p uringParams
	fd, _, e := unix.Syscall(unix.SYS_IO_URING_SETUP, uringEntries, uintptr(unsafe.Pointer(&p)), 0)
	if e != 0 {
		return nil, e
	}
	r := &uring{fd: int(fd), file: f, target: int32(f.Fd()), direct: direct, free: make(chan uint32, uringEntries), reaped: make(chan struct{})}
	defer func() {
		if err != nil {
			r.unmap()
		}
	}()
	if p.features&featSingleMap == 0 {
		return nil, errors.ErrUnsupported
	}
	const prot, flags = unix.PROT_READ | unix.PROT_WRITE, unix.MAP_SHARED | unix.MAP_POPULATE
	size := max(p.sq.array+p.sqEntries*4, p.cq.cqes+p.cqEntries*uint32(unsafe.Sizeof(completion{})))
	if r.rings, err = unix.Mmap(r.fd, 0, int(size), prot, flags); err != nil {
		return nil, err
	}
	if r.slots, err = unix.Mmap(r.fd, mapSubmissions, int(p.sqEntries)*int(unsafe.Sizeof(submission{})), prot, flags); err != nil {
		return nil, err
	}
	word := func(at uint32) *uint32 { return (*uint32)(unsafe.Pointer(&r.rings[at])) }
	r.sqHead, r.sqTail, r.sqMask = word(p.sq.head), word(p.sq.tail), *word(p.sq.mask)
	r.sqArray = unsafe.Slice(word(p.sq.array), p.sqEntries)
	r.submissions = unsafe.Slice((*submission)(unsafe.Pointer(&r.slots[0])), p.sqEntries)
	r.cqHead, r.cqTail, r.cqMask = word(p.cq.head), word(p.cq.tail), *word(p.cq.mask)
	r.completions = unsafe.Slice((*completion)(unsafe.Pointer(&r.rings[p.cq.cqes])), p.cqEntries)
	for i := range r.results {
		r.results[i] = make(chan int32, 1)
		r.free <- uint32(i)
	}
	event, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	r.event = os.NewFile(uintptr(event), "eventfd")
	number := int32(event)
	_, _, e = unix.Syscall6(unix.SYS_IO_URING_REGISTER, fd, registerEventFD, uintptr(unsafe.Pointer(&number)), 1, 0, 0)
	if e != 0 {
		r.event.Close()
		return nil, e
	}
	go r.reapEvents()
	return r, nil
}

// reapEvents reaps each time that the kernel signals completions by the eventfd. It need not read
// the eventfd, since epoll is edge-triggered: it reports each signal.
func (r *uring) reapEvents() {
	defer close(r.reaped)
	if conn, err := r.event.SyscallConn(); err == nil {
		_ = conn.Read(func(uintptr) (done bool) {
			r.reap()
			return false
		})
	}
}

// reap passes each completion to the goroutine that waits for it. One goroutine at a time reaps.
// After it has unlocked reaping, it checks the queue again, since others may have failed to lock
// meanwhile.
func (r *uring) reap() {
	for atomic.LoadUint32(r.cqTail) != atomic.LoadUint32(r.cqHead) && r.reaping.TryLock() {
		for head := atomic.LoadUint32(r.cqHead); head != atomic.LoadUint32(r.cqTail); {
			c := r.completions[head&r.cqMask]
			head++
			atomic.StoreUint32(r.cqHead, head)
			r.results[c.user] <- c.result
		}
		r.reaping.Unlock()
	}
}

// ReadAt reads like os.File.ReadAt. The kernel writes to b while the goroutine waits, so b must not
// be on a stack.
func (r *uring) ReadAt(b []byte, off int64) (n int, err error) {
	for n < len(b) {
		m, err := r.read(b[n:], off+int64(n))
		switch err {
		case unix.EAGAIN, unix.EBUSY, unix.EINTR, unix.ECANCELED: // a transient refusal
			m, err = r.file.ReadAt(b[n:], off+int64(n))
		}
		n += m
		if err != nil {
			return n, err
		}
		if m == 0 {
			return n, io.EOF
		}
	}
	return n, nil
}

// read makes one read, which may be short.
func (r *uring) read(b []byte, off int64) (n int, err error) {
	i := <-r.free
	defer func() { r.free <- i }()
	r.submit(submission{op: opRead, fd: r.target, offset: uint64(off),
		addr: uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))), length: uint32(len(b)), user: uint64(i)})
	r.reap()
	result := <-r.results[i]
	runtime.KeepAlive(b)
	if result < 0 {
		return 0, syscall.Errno(-result)
	}
	return int(result), nil
}

// submit passes s to the kernel, or leaves it to the goroutine that gathers. If the kernel refuses a
// read, the error is the read's result.
func (r *uring) submit(s submission) {
	r.submitting.Lock()
	defer r.submitting.Unlock()
	r.push(s)
	switch {
	case !r.gathers && len(r.free) < uringEntries-1: // others read too
		r.gathers = true
		r.submitting.Unlock()
		runtime.Gosched()
		r.submitting.Lock()
		r.gathers = false
		r.enter()
	case !r.gathers || r.queued() >= mostGathered:
		r.enter()
	}
}

// push adds s to the submission queue. The queue has room, since it has an entry for each of
// results. The caller holds submitting.
func (r *uring) push(s submission) {
	tail := *r.sqTail
	r.submissions[tail&r.sqMask] = s
	r.sqArray[tail&r.sqMask] = tail & r.sqMask
	atomic.StoreUint32(r.sqTail, tail+1)
}

// queued returns the number of entries that the kernel has not seen. The caller holds submitting.
func (r *uring) queued() uint32 { return *r.sqTail - atomic.LoadUint32(r.sqHead) }

// enter submits all entries of the queue. The caller holds submitting.
func (r *uring) enter() {
	for r.queued() > 0 {
		n, e := r.call(r.queued())
		if e == unix.EINTR || e == 0 && n > 0 {
			continue
		}
		// The kernel reads the tail only in this call, so entries can be withdrawn.
		for refused := cmp.Or(e, unix.EAGAIN); r.queued() > 0; {
			tail := *r.sqTail - 1
			r.results[r.submissions[tail&r.sqMask].user] <- -int32(refused)
			atomic.StoreUint32(r.sqTail, tail)
		}
	}
}

// call is io_uring_enter for n entries. It only begins reads with O_DIRECT, so the scheduler need not
// be told. Reads through the page cache may wait in it.
func (r *uring) call(n uint32) (submitted uintptr, e syscall.Errno) {
	if r.direct {
		submitted, _, e = syscall.RawSyscall6(unix.SYS_IO_URING_ENTER, uintptr(r.fd), uintptr(n), 0, 0, 0, 0)
	} else {
		submitted, _, e = syscall.Syscall6(unix.SYS_IO_URING_ENTER, uintptr(r.fd), uintptr(n), 0, 0, 0, 0)
	}
	return submitted, e
}

// Close closes the io_uring. No other call may be running.
func (r *uring) Close() error {
	r.event.Close()
	<-r.reaped
	r.unmap()
	return nil
}

func (r *uring) unmap() {
	for _, m := range [][]byte{r.rings, r.slots} {
		if m != nil {
			_ = unix.Munmap(m)
		}
	}
	unix.Close(r.fd)
}
