// Sequences of records as a source.

package extsort

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"iter"
	"math"

	"github.com/freehold-go/freehold/internal/arg"
)

// SortedSeq returns an iterator over the records of seq in order: see [Sorted]. A
// record may have any bytes, so Options.Format is not used; seq may use its memory
// again for the next one. seq runs on several goroutines, one after the other.
func SortedSeq(ctx context.Context, o *Options, seq iter.Seq[[]byte]) iter.Seq2[[]byte, error] {
	if seq == nil {
		arg.Panicf("extsort.SortedSeq", "seq is nil")
	}
	return func(yield func([]byte, error) bool) {
		framed := Options{}
		if o != nil {
			framed = *o
		}
		framed.Format = LengthPrefixed()
		next, stop := iter.Pull(seq)
		defer stop()
		Sorted(ctx, &framed, &seqReader{ctx: ctx, next: next})(yield)
	}
}

// A seqReader reads records as LengthPrefixed has them.
type seqReader struct {
	ctx    context.Context
	next   func() ([]byte, bool)
	length [lengthBytes]byte
	head   []byte // what is left of length
	record []byte // and of the record after it
}

func (r *seqReader) Read(b []byte) (n int, err error) {
	for n < len(b) {
		if len(r.head)+len(r.record) == 0 {
			if r.ctx.Err() != nil {
				return n, context.Cause(r.ctx)
			}
			record, ok := r.next()
			if !ok {
				return n, io.EOF
			}
			if uint64(len(record)) > math.MaxUint32 {
				return n, fmt.Errorf("freehold: extsort: a record of %s", arg.Bytes(len(record)))
			}
			binary.LittleEndian.PutUint32(r.length[:], uint32(len(record)))
			r.head, r.record = r.length[:], record
		}
		c := copy(b[n:], r.head)
		r.head = r.head[c:]
		n += c
		c = copy(b[n:], r.record)
		r.record = r.record[c:]
		n += c
	}
	return n, nil
}
