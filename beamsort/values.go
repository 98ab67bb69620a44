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

// Pair is a value and its sort key.
type Pair struct {
	Key, Value []byte
}

// SortValues returns an iterator over the pairs of a group in the order of their keys' bytes.
// Pairs with equal keys keep their order. Use it in a DoFn behind a GroupByKey of KV<K, Pair>,
// with the group's iterator:
//
//	func (f *fn) ProcessElement(ctx context.Context, user string,
//		events func(*beamsort.Pair) bool, emit func(string)) error {
//
//		for event, err := range beamsort.SortValues(ctx, nil, events) {
//
// Until it ends, each loop takes up to o.MemoryBytes outside of the Go heap, and temporary files
// in o.TempDirs on the worker for the rest. A worker runs one loop for each of its concurrent
// bundles. o's Format, Key and ThenRecord are not used; nil means all defaults.
//
// A pair's memory is valid until the next pair. The errors are as for [extsort.Sorted]; an error
// is the iterator's last element. group is read once: a second loop gets the pairs that group
// yields then.
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

// decode splits a record, the key's length followed by key and value, into a pair.
func decode(record []byte) Pair {
	n, size := binary.Uvarint(record)
	rest := record[size:]
	return Pair{Key: rest[:n:n], Value: rest[n:]}
}
