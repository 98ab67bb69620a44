// Job: one sort's options, memory, files and runs.

package extsort

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/file/atomicfile"
	"github.com/freehold-go/freehold/internal/file/spill"
	"github.com/freehold-go/freehold/internal/keysort"
)

// Options are the order and the resources of a sort. nil means all defaults: lines, ordered
// by their bytes.
type Options struct {
	// Format says where records begin and end. The zero Format is Lines('\n').
	Format Format

	// Key returns the sort key of a record. bytes.Compare of two keys decides which
	// record is first. Key may append the key to dst, which is empty, or return a part
	// of record; dst and record are valid during the call only. Equal records must have
	// equal keys. Calls never overlap, and a record may need two. A key is stored in
	// front of its record, so it takes memory and disk space. nil means that a record
	// is its own key.
	Key func(dst, record []byte) []byte

	// ThenRecord orders records with equal keys by their bytes; without it they keep
	// the order of the input. It takes two bytes a record, and one for each zero byte
	// in a key. It is ignored without Key.
	ThenRecord bool

	// Reverse reverses the order of keys. Records with equal keys still keep the order
	// of the input.
	Reverse bool

	// Unique keeps the first of records with equal keys and drops the others. With
	// ThenRecord it drops only equal records.
	Unique bool

	// MemoryBytes is how many bytes a sort takes from Parent, at once. Pages that it
	// does not touch are not resident. On the Go heap it uses a few hundred bytes for
	// each run or source. 0 means 256 MiB; less than MinMemoryBytes is a panic. A
	// record with its key may have about
	// min(MemoryBytes/8, MemoryBytes/(4*Parallel)) bytes. A longer one is a
	// TooLongError.
	MemoryBytes int

	// Parallel is how many goroutines sort at a time. 0 means GOMAXPROCS; negative is
	// a panic. A sort takes fewer if MemoryBytes is less than MinMemoryBytes for each,
	// or if the process may not open two more files for each. Each sorts up to 4 GiB
	// at a time; memory beyond that speeds up merges alone. Further goroutines write,
	// and one more merges, so that merging goes on while others wait for the disk.
	Parallel int

	// TempDirs are the directories of temporary files, which a sort creates if the
	// input does not fit in MemoryBytes. The files need about as much space as the
	// records and their keys. On Linux they shrink while they are merged; elsewhere
	// more than one pass may need twice the space. The goroutines take the directories
	// in turn. None means os.TempDir, which many systems keep in memory.
	TempDirs []string

	// Progress, if not nil, is called from time to time. Calls never overlap, and the
	// sort waits for them. A panic of Progress, Key, a source or the destination is
	// passed to the caller of the sort.
	Progress func(Progress)

	// Parent provides the memory. nil means freehold.Pages.
	Parent freehold.Allocator
}

const defaultMemory = 256 << 20

type job struct {
	l        layout
	o        Options
	mem      []byte
	plan     *plan
	progress *meter
	stop     atomic.Bool // set on cancellation: sorting in memory stops early

	mu      sync.Mutex // guards the following while workers run
	runs    []*run
	files   []*spill.File
	longest int // bytes of the longest stored record
}

// withJob checks the arguments of call and calls f with a job. It raises the panic of a
// function of the caller again, on the caller's goroutine.
func withJob(ctx context.Context, call string, o *Options, src []io.Reader, f func(j *job) error) error {
	arg.NotNil(call, "ctx", ctx)
	for i, in := range src {
		arg.NotNil(call, fmt.Sprintf("source %d", i), in)
	}
	j, err := newJob(call, o)
	if err != nil {
		return err
	}
	defer j.close()
	return keysort.Pass(f(j))
}

// newJob checks the options of call and takes the memory.
func newJob(call string, o *Options) (*job, error) {
	j := &job{}
	if o != nil {
		j.o = *o
	}
	arg.AtLeast(call, "MemoryBytes", j.o.MemoryBytes, 0)
	arg.AtLeast(call, "Parallel", j.o.Parallel, 0)
	if j.o.Key == nil {
		j.o.ThenRecord = false
	}
	j.o.MemoryBytes = cmp.Or(j.o.MemoryBytes, defaultMemory)
	if j.o.MemoryBytes < MinMemoryBytes {
		arg.Panicf(call, "MemoryBytes %d, want 0 or at least %d", j.o.MemoryBytes, MinMemoryBytes)
	}
	j.o.Parallel = cmp.Or(j.o.Parallel, runtime.GOMAXPROCS(0))
	if len(j.o.TempDirs) == 0 {
		j.o.TempDirs = []string{os.TempDir()}
	}
	if j.o.Parent == nil {
		j.o.Parent = freehold.Pages()
	}
	j.l = newLayout(&j.o)
	j.progress = &meter{report: j.o.Progress}
	mem, err := j.o.Parent.Alloc(j.o.MemoryBytes&^(blockAlign-1), blockAlign)
	if err != nil {
		return nil, err
	}
	_ = freehold.Advise(mem, freehold.AdviceHugePages)
	j.mem = mem
	j.plan = newPlan(mem, min(j.o.Parallel, fileWorkers()), j.l.kind == kindKeyed)
	j.l.maxStored = j.plan.maxStored
	return j, nil
}

// newLayout returns the layout of stored records.
func newLayout(o *Options) layout {
	l := layout{Format: o.Format, key: o.Key, thenRecord: o.ThenRecord, descending: o.Reverse, unique: o.Unique}
	if l.kind == kindDefault {
		l.Format = Lines('\n')
	}
	l.raw, l.ending = l.kind, []byte{l.end}
	if l.key != nil {
		l.kind = kindKeyed
	}
	l.ties = l.kind == kindKeyed && !l.thenRecord || l.kind == kindFixed && l.keyN < l.size
	return l
}

// close closes the temporary files and frees the memory.
func (j *job) close() {
	for _, f := range j.files {
		_ = f.Close()
	}
	j.o.Parent.Free(j.mem)
}

// createFile returns temporary file i.
func (j *job) createFile(i int) (*spill.File, error) {
	f, err := spill.Create("extsort", j.o.TempDirs[i%len(j.o.TempDirs)])
	if err != nil {
		return nil, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.files = append(j.files, f)
	return f, nil
}

// spilled reports whether the runs are in files.
func (j *job) spilled() bool { return len(j.runs) > 0 && j.runs[0].file != nil }

// bytes returns about how many bytes the records of all runs have.
func (j *job) bytes() (n int64) {
	for _, r := range j.runs {
		n += r.bytes
	}
	return n
}

// inputBytes returns the size of all inputs, or 0 if one of them has no known size.
func inputBytes(inputs []io.Reader) (total int64) {
	for _, in := range inputs {
		f, ok := in.(interface{ Stat() (fs.FileInfo, error) })
		if !ok {
			return 0
		}
		info, err := f.Stat()
		if err != nil || !info.Mode().IsRegular() {
			return 0
		}
		total += info.Size()
	}
	return total
}

// writeTo calls f with a writer to dst.
func (j *job) writeTo(dst io.Writer, f func(w *writer) error) error {
	if out, ok := dst.(*atomicfile.File); ok && !out.InPlace() {
		return j.writeToFile(out, f)
	}
	return writing(j.plan.output(), 0, func(b []byte, _ int64) error {
		n, err := dst.Write(b)
		if err == nil && n < len(b) {
			return fmt.Errorf("freehold: extsort: a Write of %d bytes wrote %d: %w", len(b), n, io.ErrShortWrite)
		}
		return err
	}, f)
}

// writeToFile calls f with a writer to the end of out. If the input did not fit in memory, it
// writes past the page cache, which is faster.
func (j *job) writeToFile(out *atomicfile.File, f func(w *writer) error) error {
	from, err := out.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	file := spill.New("extsort", out.File, "writing "+out.Path())
	if j.spilled() && from&(blockAlign-1) == 0 {
		file.GoDirect()
	}
	direct := file.Direct()
	var size int64
	err = writing(j.plan.output(), from, file.WriteAt, func(w *writer) error {
		err := f(w)
		size = w.size()
		if direct {
			w.pad()
		}
		return err
	})
	if err != nil || !direct {
		return err
	}
	return cmp.Or(file.EndDirect(), out.Truncate(size))
}

// all calls f(0) to f(n-1) and waits. Each call has its own goroutine unless n is 1. The first
// error cancels the others' context and is returned. A panic becomes such an error, which
// withJob raises again.
func all(ctx context.Context, n int, f func(ctx context.Context, i int) error) error {
	if n == 1 {
		return f(ctx, 0)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var once sync.Once
	var first error
	failed := func(err error) {
		once.Do(func() { first = err })
		cancel(err)
	}
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { keysort.Catch(func() error { return f(ctx, i) }, failed) })
	}
	wg.Wait()
	return first
}
