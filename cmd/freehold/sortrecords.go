// Sorting records: as Go values, in a buffer, or in temporary files.

package main

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/buffer"
	"github.com/freehold-go/freehold/extsort"
)

// A recordSort is one measurement of the sort story.
type recordSort struct {
	n      int64
	memory int64 // bytes to sort in
	report func(fraction float64)
	f      recordFigures
}

// recordFigures is what it measured. Times are in milliseconds.
type recordFigures struct {
	Create float64 `json:"create"`
	Sort   float64 `json:"sort"`
	Verify float64 `json:"verify"`

	Cycles   int     `json:"cycles"`   // collections in all that time
	CPU      float64 `json:"cpu"`      // processor time of them
	Collect  float64 `json:"collect"`  // one more, with the records live
	HeapLive int64   `json:"heapLive"` // Go heap after it
	OffLive  int64   `json:"offLive"`  // bytes off the Go heap with the records live
	PeakRSS  int64   `json:"peakRSS"`
	Disk     int64   `json:"disk"` // bytes in temporary files
}

// spills reports whether n records need temporary files: a buffer takes half of its
// size to be sorted.
func spills(n, memory int64) bool { return n > memory/(recordBytes*3/2) }

// step is how many records are made or verified between two looks at the context.
const step = 1 << 16

// inSteps calls f for the numbers from 0 to n-1, and reports from one fraction to
// another.
func (s *recordSort) inSteps(ctx context.Context, from, to float64, f func(i int64) error) error {
	for at := int64(0); at < s.n; {
		if err := ctx.Err(); err != nil {
			return err
		}
		for end := min(at+step, s.n); at < end; at++ {
			if err := f(at); err != nil {
				return err
			}
		}
		s.report(from + (to-from)*float64(at)/float64(s.n))
	}
	return nil
}

// The fractions at which creating and sorting end.
const created, isSorted = 0.3, 0.9

// A goRecord is a record as a Go program has it.
type goRecord struct{ key, number, seal uint64 }

// onGoHeap sorts pointers to values.
func (s *recordSort) onGoHeap(ctx context.Context) error {
	began := time.Now()
	records := make([]*goRecord, 0, s.n)
	err := s.inSteps(ctx, 0, created, func(i int64) error {
		number := uint64(i)
		key := recordKey(number)
		records = append(records, &goRecord{key, number, recordSeal(key, number)})
		return nil
	})
	if err != nil {
		return err
	}
	s.f.Create = since(began)

	began = time.Now()
	slices.SortFunc(records, func(a, b *goRecord) int { return cmp.Compare(a.key, b.key) })
	s.f.Sort = since(began)
	s.report(isSorted)

	began = time.Now()
	var c recordCheck
	err = s.inSteps(ctx, isSorted, 1, func(i int64) error { return c.add(records[i].key, records[i].number, records[i].seal) })
	if err == nil {
		err = c.end(uint64(s.n))
	}
	s.f.Verify = since(began)
	s.f.collect()
	runtime.KeepAlive(records)
	return err
}

// inBuffer sorts a buffer.
func (s *recordSort) inBuffer(ctx context.Context) (err error) {
	h := freehold.NewHeap(nil)
	b := buffer.New(h, nil)
	defer func() {
		if closed := b.Close(); err == nil {
			err = closed
		}
		h.Close()
	}()
	r, err := buffer.NewRecords(b, &buffer.RecordsOptions{RecordBytes: recordBytes})
	if err != nil {
		return err
	}
	began := time.Now()
	err = s.inSteps(ctx, 0, created, func(i int64) error {
		record, err := r.Append(recordBytes)
		if err != nil {
			return err
		}
		putRecord(record, uint64(i))
		return nil
	})
	if err != nil {
		return err
	}
	s.f.Create = since(began)

	began = time.Now()
	err = r.SortByUint64(ctx, keyOfRecord, &buffer.SortOptions{Progress: func(done, total int) {
		s.report(created + (isSorted-created)*float64(done)/float64(max(total, 1)))
	}})
	if err != nil {
		return err
	}
	s.f.Sort = since(began)

	began = time.Now()
	var c recordCheck
	records := b.Bytes()
	err = s.inSteps(ctx, isSorted, 1, func(i int64) error {
		return c.addBytes(records[i*recordBytes:][:recordBytes])
	})
	if err == nil {
		err = c.end(uint64(s.n))
	}
	s.f.Verify = since(began)
	s.f.collect()
	s.f.OffLive = int64(h.Stats().LiveBytes)
	return err
}

// inFiles sorts in temporary files. Records are made while it reads, and verified
// while it writes.
func (s *recordSort) inFiles(ctx context.Context) error {
	began, read := time.Now(), time.Duration(0)
	in := &recordReader{n: uint64(s.n), report: func(done, n uint64) {
		s.report(float64(done) / float64(n) / 2)
		if done == n {
			read = time.Since(began)
		}
	}}
	var c recordCheck
	o := &extsort.Options{
		Format:      extsort.FixedBy(recordBytes, 0, recordKeyBytes),
		MemoryBytes: int(s.memory),
		Progress: func(p extsort.Progress) {
			if p.Phase == extsort.PhaseWriting && p.Total > 0 {
				s.report(0.5 + float64(p.Done)/float64(p.Total)/2)
			}
		},
	}
	if err := extsort.Sort(ctx, &c, o, in); err != nil {
		return err
	}
	s.f.Create = float64(read) / 1e6
	s.f.Sort = since(began) - s.f.Create
	s.f.Disk = s.n * recordBytes
	s.f.collect()
	return c.end(uint64(s.n))
}

// collect measures a collection, with all that is live.
func (f *recordFigures) collect() {
	began := time.Now()
	runtime.GC()
	f.Collect = since(began)
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	f.HeapLive = int64(mem.HeapAlloc)
}

// seldom returns a report that passes on what is half a percent more than before.
func seldom(report func(float64)) func(float64) {
	var mu sync.Mutex
	last := 0.0
	return func(fraction float64) {
		mu.Lock()
		defer mu.Unlock()
		if fraction >= last+0.005 {
			last = fraction
			report(fraction)
		}
	}
}
