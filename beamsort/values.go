package beamsort

import (
	"context"
	"encoding/binary"
	"iter"
	"reflect"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/freehold-go/freehold/extsort"
)

func init() { beam.RegisterType(reflect.TypeFor[Pair]()) }

// Pair is a value with the key that it is sorted by.
type Pair struct {
	Key, Value []byte
}

// SortValues returns an iterator over the pairs of a group in the order of their
// keys' bytes; those with equal keys are in the order that they come in. It is for a DoFn behind a GroupByKey of
// KV<K, Pair>, which gives it the group's iterator:
//
//	func (f *fn) ProcessElement(ctx context.Context, user string, events func(*beamsort.Pair) bool, emit func(string)) error {
//		for event, err := range beamsort.SortValues(ctx, nil, events) {
//
// Each loop takes o.MemoryBytes, outside of the Go heap, and temporary files on
// the worker in o.TempDirs for what does not fit, until it ends. A worker runs as many at a time as it runs
// bundles. o's Format, Key and ThenRecord are not used; nil means all defaults.
//
// A pair's memory is valid until the next one. The errors are those of
// [extsort.Sorted], of which the iterator yields one at most, as the last. group is read
// once: a second loop has what group yields then.
func SortValues(ctx context.Context, o *extsort.Options, group func(*Pair) bool) iter.Seq2[Pair, error] {
	var options extsort.Options
	if o != nil {
		options = *o
	}
	options.Key = func(_, record []byte) []byte { return decode(record).Key }
	options.ThenRecord = false
	encoded := func(yield func([]byte) bool) {
		var record []byte
		for p := (Pair{}); group(&p); p = (Pair{}) {
			record = binary.AppendUvarint(record[:0], uint64(len(p.Key)))
			record = append(append(record, p.Key...), p.Value...)
			if !yield(record) {
				return
			}
		}
	}
	return func(yield func(Pair, error) bool) {
		for record, err := range extsort.SortedSeq(ctx, &options, encoded) {
			var p Pair
			if err == nil {
				p = decode(record)
			}
			if !yield(p, err) {
				return
			}
		}
	}
}

// decode returns the pair of a record, which is its key's length, the key and the value.
func decode(record []byte) Pair {
	n, size := binary.Uvarint(record)
	rest := record[size:]
	return Pair{Key: rest[:n:n], Value: rest[n:]}
}
