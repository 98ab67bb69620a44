// Sort: the calls that sort records, and the division of the work.
//
//	data     | share 0        | share 1        | ... one for each goroutine
//	scratch  | half   | half   | ...
//
// Each goroutine sorts a share with its half of scratch. Then shares are merged two by two, by
// all goroutines that sorted them. An algorithm implements both steps: radix (sort_radix.go) and
// mergeSort (sort_cmp.go) move records, gather (sort_entries.go) moves entries. All use the
// merge in place of sort_merge.go.

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
	// Parallel is how many goroutines sort at once; 0 means [runtime.GOMAXPROCS]. With 1
	// the caller's goroutine does all. Negative is a panic.
	Parallel int

	// Progress, if not nil, is called from time to time: done of total bytes have been
	// processed. Each byte counts once per pass. Any goroutine may call it; calls never
	// overlap.
	Progress func(done, total int)

	// From and To are offsets. Only the records with offsets in [From, To) are sorted;
	// the others keep their places. From must be the offset of a record, or 0. To may be
	// any offset; 0 means End. The extra memory is half of the size of this part.
	From, To int

	// Scratch provides the extra memory. nil means the buffer's own allocator or, for a
	// buffer in a file, a temporary file in Dir of its options.
	Scratch freehold.Allocator
}

// Sort sorts the records by cmp, which returns a negative number if a is before b, a positive
// one if a is after b, and 0 if they are equal. Equal records keep their order. cmp must not
// change records, and several goroutines call it at once. [Records.SortByPart] is up to six
// times as fast, most so for small records.
//
// Sort takes extra memory: half of the data's size, and 1 KiB for each goroutine.
//
// All records are still there, in an undefined order, if cmp contradicts itself, if cmp panics,
// or if ctx ends. Sort passes the panic to its caller, and returns [context.Cause] of ctx.
//
// The data is unchanged after other errors. They match [freehold.ErrOutOfMemory] if the extra
// memory is refused, and [ErrCorrupt] if lengths of records have changed. They are the system's
// if the temporary file cannot grow. Two events leave the data undefined, as some records are
// only in the extra memory: a file that is truncated meanwhile, and the end of the process.
func (r *Records) Sort(ctx context.Context, cmp func(a, b []byte) int, o *SortOptions) error {
	const call = "buffer.Records.Sort"
	if cmp == nil {
		arg.Panicf(call, "cmp is nil")
	}
	return r.sort(ctx, call, order{cmp: cmp}, o)
}

// SortBy sorts the records by their keys as [bytes.Compare] orders them. Records with equal keys
// keep their order. key returns the key of a record: usually a part of it, else memory that no
// later call of key changes. nil means that the whole record is the key. key has the same
// restrictions as cmp of [Records.Sort]; memory and errors are as for Sort. If the key is at the
// same place of each record, SortByPart is faster.
func (r *Records) SortBy(ctx context.Context, key func(record []byte) []byte, o *SortOptions) error {
	by := order{key: key}
	if key == nil && r.layout.fixed != 0 {
		by.part = &part{n: r.layout.fixed}
	}
	return r.sort(ctx, "buffer.Records.SortBy", by, o)
}

// SortByPart sorts records of RecordBytes by n of their bytes, from offset at, as
// [bytes.Compare] orders them. Records with equal keys keep their order. Memory and errors are
// as for [Records.Sort]. It panics unless these bytes are in the record. It is fastest if
// RecordBytes is a multiple of 8 up to 64.
func (r *Records) SortByPart(ctx context.Context, at, n int, o *SortOptions) error {
	const call = "buffer.Records.SortByPart"
	r.mustHave(call, at, n)
	return r.sort(ctx, call, byPart(at, n), o)
}

// SortByUint64 is SortByPart for a number: 8 bytes from offset at, in the given byte order. It
// panics unless the records have RecordBytes of at+8 or more.
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
	arg.AtLeast(call, "key length", n, 0)
	if n > size-at {
		arg.Panicf(call, "the key is %s from offset %d, and records have %s", arg.Bytes(n), at, arg.Bytes(size))
	}
}

// An order is by cmp or by key. part is the same key if it has one place in all records.
type order struct {
	cmp  func(a, b []byte) int
	key  func(record []byte) []byte // nil is the whole record
	part *part
}

// A part is n bytes of a record from offset at. If little is set, the least significant byte is
// first.
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

// An algorithm sorts and merges whole frames. If it returns early, because sorter.stop is set or
// the user's function panics, data still has all frames.
type algorithm interface {
	// sort sorts data. scratch has more than half of its size. It returns the size of the
	// last frame.
	sort(data, scratch []byte) int

	// mergePiece merges left into out, which begins with a gap of len(left) and ends with
	// the right run. It reports whether the last frame came from left.
	mergePiece(out, left []byte) bool
}

const (
	minShare = 16 << 10 // bytes of data that are worth a goroutine
	slack    = 1 << 10  // bytes of scratch beyond half of a share

	manyPages = 8 << 20 // bytes of scratch from which on it uses huge pages
)

// sorter sorts the shares of data.
type sorter struct {
	merger
	data    []byte
	scratch []byte
	cuts    []int // the beginnings of shares in data, and its end
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

// part checks From and To of SortOptions and returns the part to sort.
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

// cut sets data to the records with offsets in [from, to), and cuts it in shares of about the
// same size. Only the last share may be larger than the average. It returns the number of
// records.
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

// scratch returns size bytes, a function that frees them, and a guard of both them and the data.
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
		_ = freehold.Advise(mem, freehold.AdviceHugePages) // for fewer TLB misses
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

// moving returns an algorithm that moves whole records of the fixed size.
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
	data := s.data[s.cuts[lo]:s.cuts[hi]:s.cuts[hi]] // copyFrames reads up to the slice's capacity
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

// work returns the sum of all ticks of sortShares(lo, hi).
func (s *sorter) work(lo, hi int) int {
	size := s.cuts[hi] - s.cuts[lo]
	if hi-lo == 1 {
		return size
	}
	mid := lo + (hi-lo)/2
	return size + s.work(lo, mid) + s.work(mid, hi)
}
