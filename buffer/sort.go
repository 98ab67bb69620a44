// Sort: the calls that sort records, and what they share.
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
	"encoding/binary"
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
// their order. [Records.SortByPart] is up to six times as fast, the more so the smaller
// the records are.
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
// are Sort's. Where the key is at the same place of each record, SortByPart is faster.
func (r *Records) SortBy(ctx context.Context, key func(record []byte) []byte, o *SortOptions) error {
	by := order{key: key}
	if key == nil && r.layout.fixed != 0 {
		by.part = &part{n: r.layout.fixed}
	}
	return r.sort(ctx, "buffer.Records.SortBy", by, o)
}

// SortByPart sorts records of RecordBytes by n of their bytes, from offset at, as
// [bytes.Compare] orders them. Records with equal keys keep their order. Memory and
// errors are Sort's. It panics unless those bytes are in the record.
//
// It is fastest if RecordBytes is a multiple of 8 up to 64.
func (r *Records) SortByPart(ctx context.Context, at, n int, o *SortOptions) error {
	const call = "buffer.Records.SortByPart"
	r.mustHave(call, at, n)
	return r.sort(ctx, call, byPart(at, n), o)
}

// SortByUint64 sorts records of RecordBytes by a number: 8 of their bytes, from offset
// at, in the given byte order. It is as SortByPart otherwise.
func (r *Records) SortByUint64(ctx context.Context, at int, order binary.ByteOrder, o *SortOptions) error {
	const call = "buffer.Records.SortByUint64"
	if order == nil {
		arg.Panicf(call, "order is nil")
	}
	r.mustHave(call, at, wordBytes)
	by := byPart(at, wordBytes)
	if order.Uint16([]byte{1, 0}) == 1 {
		by.part.little = true
		by.cmp = func(a, b []byte) int {
			return cmp.Compare(binary.LittleEndian.Uint64(a[at:]), binary.LittleEndian.Uint64(b[at:]))
		}
	}
	return r.sort(ctx, call, by, o)
}

// mustHave panics in the name of call unless every record has n bytes at an offset.
func (r *Records) mustHave(call string, at, n int) {
	size := r.layout.fixed
	if size == 0 {
		arg.Panicf(call, "the records have no RecordBytes")
	}
	arg.Range(call, "offset", at, 0, size)
	arg.Range(call, "key length", n, 0, size-at)
}

// order is by cmp or by key. part is the same key, if it has one place.
type order struct {
	cmp  func(a, b []byte) int
	key  func(record []byte) []byte // nil is the whole record
	part *part
}

// part is n bytes of a record from an offset, the least significant one first if little.
type part struct {
	at, n  int
	little bool
}

func byPart(at, n int) order {
	return order{key: func(record []byte) []byte { return record[at : at+n] }, part: &part{at: at, n: n}}
}

// keyOf returns the key of a record.
func (o *order) keyOf(record []byte) []byte {
	if o.key == nil {
		return record
	}
	return o.key(record)
}

func (o *order) compare(a, b []byte) int {
	if o.cmp != nil {
		return o.cmp(a, b)
	}
	return bytes.Compare(o.keyOf(a), o.keyOf(b))
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
	if size%8 == 0 && 0 < size && size <= 64 && (s.part != nil || s.cmp != nil) {
		s.alg = moving(&s.merger)
	} else {
		s.alg = &gather{&s.merger}
	}
	s.piece = s.alg.mergePiece
}

// moving returns the algorithm of records that are moved as they are.
func moving(m *merger) algorithm {
	switch m.layout.fixed {
	case 8:
		return movingOf[[8]byte](m)
	case 16:
		return movingOf[[16]byte](m)
	case 24:
		return movingOf[[24]byte](m)
	case 32:
		return movingOf[[32]byte](m)
	case 40:
		return movingOf[[40]byte](m)
	case 48:
		return movingOf[[48]byte](m)
	case 56:
		return movingOf[[56]byte](m)
	}
	return movingOf[[64]byte](m)
}

func movingOf[R any](m *merger) algorithm {
	if m.part != nil {
		return &radix[R]{m, m.part.loads(m.layout.fixed)}
	}
	return &mergeSort[R]{merger: m}
}

// sortShares sorts shares lo to hi-1 as one, and returns the size of the last frame.
func (s *sorter) sortShares(lo, hi int) int {
	data := s.data[s.cuts[lo]:s.cuts[hi]:s.cuts[hi]] // copyFrames reads up to the capacity
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
