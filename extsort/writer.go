// Writer: bytes in order, to a file in aligned blocks or to an io.Writer.
//
//	caller --copy--> block --full--> goroutine --write--> file
//	                   ^                  |
//	                   +------ free ------+

package extsort

import (
	"cmp"
	"sync/atomic"

	"github.com/freehold-go/freehold/internal/keysort"
	"github.com/freehold-go/freehold/internal/vm"
)

// A writer has two blocks: its goroutine writes one while callers fill the other. Calls must
// not overlap. After the first error it writes nothing more and returns that error.
type writer struct {
	write func(b []byte, at int64) error
	at    int64 // offset of the block in the file
	block []byte
	n     int // bytes in block
	full  chan writeJob
	free  chan []byte
	ended chan struct{}
	err   atomic.Pointer[error]

	closed bool
}

type writeJob struct {
	b  []byte
	n  int
	at int64
}

// writing calls f with a writer that uses mem, and closes it.
func writing(mem []byte, at int64, write func(b []byte, at int64) error, f func(*writer) error) error {
	w := newWriter(mem, at, write)
	defer w.close() // if f panics
	return cmp.Or(f(w), w.close())
}

// newWriter returns a writer whose two blocks are the halves of mem. The first byte has the
// offset at. Close ends its goroutine.
func newWriter(mem []byte, at int64, write func(b []byte, at int64) error) *writer {
	half := len(mem) / 2
	w := &writer{write: write, at: at, block: mem[:half], full: make(chan writeJob, 1), free: make(chan []byte, 2), ended: make(chan struct{})}
	w.free <- mem[half : 2*half]
	go w.run()
	return w
}

func (w *writer) run() {
	defer close(w.ended)
	defer func() {
		for job := range w.full { // jobs remain if write called runtime.Goexit
			w.free <- job.b
		}
	}()
	for job := range w.full {
		if w.failed() == nil {
			keysort.Catch(func() error { return w.write(job.b[:job.n], job.at) }, func(err error) { w.err.Store(&err) })
		}
		w.free <- job.b
	}
}

func (w *writer) failed() error {
	if err := w.err.Load(); err != nil {
		return *err
	}
	return nil
}

// add appends b.
func (w *writer) add(b []byte) error {
	for {
		n := copy(w.block[w.n:], b)
		w.n += n
		if b = b[n:]; len(b) == 0 {
			return nil
		}
		if err := w.next(); err != nil {
			return err
		}
	}
}

// next passes the full block to the goroutine and takes the other one.
func (w *writer) next() error {
	w.full <- writeJob{b: w.block, n: w.n, at: w.at}
	w.at += int64(w.n)
	w.n = 0
	w.block = <-w.free
	return w.failed()
}

// size returns the offset of the next byte.
func (w *writer) size() int64 { return w.at + int64(w.n) }

// pad appends zeros up to a multiple of blockAlign.
func (w *writer) pad() {
	to := vm.RoundUp(w.n, blockAlign)
	clear(w.block[w.n:to])
	w.n = to
}

// close writes the last block and ends the goroutine. Further calls return the same error.
func (w *writer) close() error {
	if w.closed {
		return w.failed()
	}
	w.closed = true
	if w.n > 0 {
		w.full <- writeJob{b: w.block, n: w.n, at: w.at}
		w.at += int64(w.n)
		w.n = 0
	}
	close(w.full)
	<-w.ended
	return w.failed()
}
