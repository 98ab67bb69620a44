// Sort: the three calls that sort records, and what they share.
//
//	data     | share 0        | share 1        | ... one for each processor
//	scratch  | half   | half   | ...
//
// Each processor sorts a share with its half of scratch, and then shares are merged
// two by two, with all the processors that sorted them. An algorithm implements both
// steps; sort_merge.go has the code they share.

package buffer

import (
	"bytes"
	"cmp"
	"context"
	"runtime"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/arg"
)

// SortOptions sets up a sort; nil means all defaults.
type SortOptions struct {
	// Parallel is how many goroutines sort at once; 0 means [runtime.GOMAXPROCS].
	// With 1 all is done by the caller's. Negative is a panic.
	Parallel int

	// Progress, if not nil, is called from time to time: done of total bytes have
	// been processed. Each byte counts once per pass. It is called by any goroutine,
	// one at a time.
	Progress func(done, total int)

	// From and To are offsets: the records from From on and before To are sorted, and the
	// others stay where they are. From must be the offset of a record, or 0; To may be any
	// offset, and 0 means End. The extra memory is half of the size of this part.
	From, To int

	// Scratch is where the extra memory comes from. nil means the buffer's own
	// allocator, or for a buffer in a file a temporary file in Dir of its options.
	Scratch freehold.Allocator
}

// Sort sorts the records in the order of cmp, which returns a negative number if a
// is before b, a positive one if a is after b, and else 0. Records that are equal keep
// their order. [Records.SortBy] is up to six times as fast, the more so the smaller the
// records are.
//
// It takes extra memory of half of the data's size and 1 KiB for each goroutine. cmp
// must not change records; it is called by several goroutines at once.
//
// The records are all there whatever happens, though in another order: when cmp
// contradicts itself, when it panics, which passes to the caller of Sort, or when ctx
// is done, in which case Sort returns [context.Cause] of it. Errors match
// [freehold.ErrOutOfMemory] if the extra memory is refused, are the system's if its
// temporary file cannot grow, and match [ErrCorrupt] if lengths of records have
// changed. The data is then unchanged. An error of a file that somebody has truncated
// leaves the data undefined, and so does the end of the process: some records are in
// the extra memory alone.
func (r *Records) Sort(ctx context.Context, cmp func(a, b []byte) int, o *SortOptions) error {
	const call = "buffer.Records.Sort"
	if cmp == nil {
		arg.Panicf(call, "cmp is nil")
	}
	return r.sort(ctx, call, order{cmp: cmp}, o)
}

// SortBy sorts the records by their keys as [bytes.Compare] orders them. Records with
// equal keys keep their order. key returns the key of a record: usually a part
// of it, else memory that no later call of key changes. nil means that the whole
// record is the key. key has the same restrictions as Sort's cmp; memory and errors
// are Sort's.
//
// It is fastest if records have RecordBytes, a multiple of 8 up to 64, and the keys
// are the same part of each.
func (r *Records) SortBy(ctx context.Context, key func(record []byte) []byte, o *SortOptions) error {
	if key == nil {
		key = func(record []byte) []byte { return record }
	}
	return r.sort(ctx, "buffer.Records.SortBy", order{key: key}, o)
}

// SortByUint64 sorts the records by keys that are numbers. Records with equal keys
// keep their order. key has the same restrictions as Sort's cmp; memory and errors
// are Sort's.
//
// It is fastest if records have RecordBytes, a multiple of 8 up to 64, and the key is
// 4 or 8 bytes of the record in either byte order, or those XOR a constant.
func (r *Records) SortByUint64(ctx context.Context, key func(record []byte) uint64, o *SortOptions) error {
	const call = "buffer.Records.SortByUint64"
	if key == nil {
		arg.Panicf(call, "key is nil")
	}
	return r.sort(ctx, call, order{number: key}, o)
}

// order is by one of its functions.
type order struct {
	cmp    func(a, b []byte) int
	key    func(record []byte) []byte
	number func(record []byte) uint64
}

func (o *order) compare(a, b []byte) int {
	switch {
	case o.cmp != nil:
		return o.cmp(a, b)
	case o.number != nil:
		return cmp.Compare(o.number(a), o.number(b))
	}
	return bytes.Compare(o.key(a), o.key(b))
}

// An algorithm sorts and merges whole frames. Where it returns early, because
// sorter.stop is set or the user's function panics, data still has all the frames.
type algorithm interface {
	// sort sorts data, with half of its size and more of scratch. It returns the
	// size of the last frame.
	sort(data, scratch []byte) int

	// mergePiece merges left into out. out ends with the right run and begins with a gap
	// of len(left). It reports whether the last frame came from left.
	mergePiece(out, left []byte) bool
}

const (
	minShare = 16 << 10 // bytes of data that are worth a goroutine
	slack    = 1 << 10  // bytes of scratch beyond half of a share

	manyPages = 8 << 20 // scratch of this size or more is advised to use huge pages
)

// sorter sorts the shares of data.
type sorter struct {
	merger
	data    []byte
	scratch []byte
	cuts    []int // where shares begin in data, and the end
	halves  []int // the same in scratch: multiples of blockAlign
	alg     algorithm
}

func (r *Records) sort(ctx context.Context, call string, by order, o *SortOptions) error {
	r.b.mustBeOpen(call)
	arg.NotNil(call, "ctx", ctx)
	if o == nil {
		o = &SortOptions{}
	}
	arg.AtLeast(call, "Parallel", o.Parallel, 0)
	from, to := r.part(call, o.From, o.To)
	if r.b.readOnly() {
		return errReadOnly
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	parallel := o.Parallel
	if parallel == 0 {
		parallel = runtime.GOMAXPROCS(0)
	}
	s := &sorter{merger: merger{job: &job{ctx: ctx, progress: o.Progress}, order: by, layout: r.layout}}
	n, err := s.cut(r, from, to, parallel)
	if err != nil || n < 2 {
		return err
	}
	first, parts := r.layout.first(), len(s.cuts)-1
	mem, free, guard, err := r.scratch(first+s.halves[parts], o.Scratch)
	if err != nil {
		return err
	}
	defer free()
	s.scratch, s.guard, s.total = mem[first:], guard, s.work(0, parts)
	return s.run(func() {
		s.choose()
		s.sortShares(0, parts)
	})
}

// part returns the offsets of the part that SortOptions choose.
func (r *Records) part(call string, from, to int) (int, int) {
	end := r.End()
	if to == 0 {
		to = end
	}
	arg.Range(call, "To", to, 0, end)
	arg.Range(call, "From", from, 0, to)
	if size := r.layout.fixed; size != 0 && from%size != 0 {
		arg.Panicf(call, "From %d, where no record begins", from)
	}
	return max(from, r.layout.first()), to
}

// cut sets data to the records between from and to, and cuts it in shares of about
// the same size. No share but the last is larger than the average. It returns the
// number of records.
func (s *sorter) cut(r *Records, from, to, parallel int) (n int, err error) {
	shares := max(1, min(parallel, (to-from)/minShare))
	s.cuts = []int{0}
	end := from
	if size := r.layout.fixed; size != 0 {
		if r.b.n != r.n*size {
			return 0, r.changed(r.b.n / size)
		}
		n = (to - from + size - 1) / size
		end += n * size
		for i := 1; i < shares; i++ {
			s.cuts = append(s.cuts, n/shares*i*size)
		}
	} else if err := r.scan(from, to, func(at, frame int) {
		n++
		end = at + frame
		for len(s.cuts) < shares && end-from > (to-from)/shares*len(s.cuts) {
			s.cuts = append(s.cuts, at-from)
		}
	}); err != nil {
		return 0, err
	}
	if n < 2 {
		return n, nil
	}
	s.data = r.b.Bytes()[from:end]
	s.cuts = append(s.cuts, len(s.data))
	for i, cut := range s.cuts {
		s.halves = append(s.halves, cut/2&^(blockAlign-1)+i*slack)
	}
	return n, nil
}

// scratch returns size bytes, what frees them, and what guards both them and the
// data.
func (r *Records) scratch(size int, a freehold.Allocator) (mem []byte, free func(), guard func(func() error) error, err error) {
	guard = r.b.guarded
	if a == nil && r.b.file != nil {
		temp := New(freehold.Default(), &Options{SpillAfter: 1, Dir: r.b.opts.Dir})
		if mem, err = temp.Extend(size); err != nil {
			_ = temp.Close()
			return nil, nil, nil, err
		}
		guard = func(f func() error) error {
			return r.b.guarded(func() error { return temp.guarded(f) })
		}
		return mem, func() { _ = temp.Close() }, guard, nil
	}
	if a == nil {
		a = r.b.parent
	}
	if mem, err = a.Alloc(size, blockAlign); err != nil {
		return nil, nil, nil, err
	}
	if size >= manyPages {
		_ = freehold.Advise(mem, freehold.AdviceHugePages) // for fewer TLB misses, if it can be had
	}
	return mem, func() { a.Free(mem) }, guard, nil
}

// choose sets the algorithm.
func (s *sorter) choose() {
	size := s.layout.fixed
	switch {
	case size == 0 || size%8 != 0 || size > 64:
	case s.cmp != nil:
		s.alg = newMergeSort(&s.merger, size)
	default:
		if loads, ok := s.findLoads(); ok {
			s.alg = newRadix(&s.merger, size, loads)
		}
	}
	if s.alg == nil {
		s.alg = &gather{&s.merger}
	}
	s.piece = s.alg.mergePiece
}

// sortShares sorts shares lo to hi-1 as one, and returns the size of the last frame.
func (s *sorter) sortShares(lo, hi int) int {
	data := s.data[s.cuts[lo]:s.cuts[hi]]
	scratch := s.scratch[s.halves[lo]:s.halves[hi]]
	if s.stop.Load() || len(data) == 0 {
		return 0
	}
	if hi-lo == 1 {
		return s.alg.sort(data, scratch)
	}
	mid := lo + (hi-lo)/2
	var last [2]int
	s.together(2, func(i int) {
		if i == 0 {
			last[0] = s.sortShares(lo, mid)
		} else {
			last[1] = s.sortShares(mid, hi)
		}
	})
	n := s.merge(data, s.cuts[mid]-s.cuts[lo], last, scratch, hi-lo)
	s.tick(len(data))
	return n
}

// work returns what tick is to add up to in sortShares(lo, hi).
func (s *sorter) work(lo, hi int) int {
	size := s.cuts[hi] - s.cuts[lo]
	if hi-lo == 1 {
		return size
	}
	mid := lo + (hi-lo)/2
	return size + s.work(lo, mid) + s.work(mid, hi)
}
