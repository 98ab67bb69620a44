// Sorts that do not end as they should: panics, cancellation, contradictions, faults.

package buffer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/freehold-go/freehold/buffer"
)

// calling returns the sorts that call the user's functions, and f before each call.
func calling(ctx context.Context, f func()) []sorting {
	return []sorting{
		{"Sort", func(r *buffer.Records, o *buffer.SortOptions) error {
			return r.Sort(ctx, func(a, b []byte) int { f(); return byKey(keyOf)(a, b) }, o)
		}, byKey(keyOf)},
		{"SortBy", func(r *buffer.Records, o *buffer.SortOptions) error {
			return r.SortBy(ctx, func(p []byte) []byte { f(); return keyOf(p) }, o)
		}, byKey(keyOf)},
		{"SortBy copies", func(r *buffer.Records, o *buffer.SortOptions) error {
			return r.SortBy(ctx, func(p []byte) []byte { f(); return bytes.Clone(keyOf(p)) }, o)
		}, byKey(keyOf)},
	}
}

// kindsIn returns sorts of records of size bytes, or of any if it is 0, by each algorithm.
func kindsIn(ctx context.Context, size int) []sorting {
	all := calling(ctx, func() {})
	if size != 0 {
		all = append(all, sorting{"SortByPart", func(r *buffer.Records, o *buffer.SortOptions) error {
			return r.SortByPart(ctx, 0, size-4, o)
		}, byKey(keyOf)})
	}
	return all
}

func kinds(size int) []sorting { return kindsIn(context.Background(), size) }

// wantSame checks that r has the given records in any order.
func wantSame(t testing.TB, r *buffer.Records, records [][]byte) {
	t.Helper()
	var got [][]byte
	for _, p := range r.All() {
		got = append(got, bytes.Clone(p))
	}
	want := slices.Clone(records)
	slices.SortFunc(got, bytes.Compare)
	slices.SortFunc(want, bytes.Compare)
	if r.Len() != len(want) || !slices.EqualFunc(got, want, bytes.Equal) {
		t.Fatalf("%d records, want %d, or others", len(got), len(want))
	}
}

// Whatever stops a sort, at any call of the user's functions: it says so, and loses no
// record. First at early calls, then later and later, until the sort ends before.
func TestStoppedSortsLoseNothing(t *testing.T) {
	enough := errors.New("enough")
	for _, o := range []buffer.RecordsOptions{{}, {RecordBytes: 24}, {RecordBytes: 9}} {
		for i, by := range kinds(o.RecordBytes) {
			for _, parallel := range []int{1, 3} {
				for _, how := range []string{"panic of the order", "cancelled by the order", "panic of Progress", "cancelled by Progress"} {
					t.Run(fmt.Sprintf("%+v/%s/%d/%s", o, by.name, parallel, how), func(t *testing.T) {
						n := 500
						if parallel > 1 {
							n = 3 * 17 << 10 / max(o.RecordBytes, 32)
						}
						in := inputs[0]
						if by.name == "SortByPart" {
							in = inputs[3] // few values, so that buckets are scattered again
						}
						records := fill(rand.New(rand.NewPCG(1, 2)), in.key, n, o.RecordBytes)
						for at, reached := int64(1), true; reached; at += at + 1 {
							ctx, cancel := context.WithCancelCause(context.Background())
							var calls atomic.Int64
							stop := func() {
								switch n := calls.Add(1); {
								case n >= at && strings.HasPrefix(how, "panic"):
									panic(enough)
								case n == at:
									cancel(enough)
									runtime.Gosched()
								}
							}
							r, so := newRecords(t, &o, records), &buffer.SortOptions{Parallel: parallel}
							all := calling(ctx, stop)
							if strings.HasSuffix(how, "Progress") {
								all = kindsIn(ctx, o.RecordBytes)
								so.Progress = func(int, int) { stop() }
							}
							if i == len(all) {
								return // it calls no order
							}
							err := func() (err error) {
								defer func() {
									if p := recover(); p != nil {
										err = p.(error)
									}
								}()
								return all[i].sort(r, so)
							}()
							cancel(nil)
							wantSame(t, r, records)
							reached = calls.Load() >= at
							if err != nil && err != enough || reached && err == nil && strings.HasPrefix(how, "panic") || !reached && err != nil {
								t.Fatalf("call %d of %d: %v", at, calls.Load(), err)
							}
						}
					})
				}
			}
		}
	}
}

// A sort reports its progress up to the end, and may be cancelled at each report.
func TestProgress(t *testing.T) {
	for _, o := range []buffer.RecordsOptions{{}, {RecordBytes: 24}, {RecordBytes: 9}} {
		for _, in := range []int{0, 1, 5, 6} {
			records := fill(rand.New(rand.NewPCG(1, 2)), inputs[in].key, 4000, o.RecordBytes)
			for _, by := range kinds(o.RecordBytes) {
				t.Run(fmt.Sprintf("%+v/%s/%s", o, inputs[in].name, by.name), func(t *testing.T) {
					r := newRecords(t, &o, records)
					at, end := 0, 0
					must(t, by.sort(r, &buffer.SortOptions{Parallel: 4, Progress: func(done, total int) {
						if done <= at || done > total || end != 0 && total != end {
							t.Errorf("%d of %d after %d of %d", done, total, at, end)
						}
						at, end = done, total
					}}))
					if at != end || end == 0 {
						t.Errorf("%d of %d at the end", at, end)
					}
				})
			}
		}
	}
}

// After a report that has ended the context the sort calls nobody any more, and
// returns the cause.
func TestProgressStopsASortAtOnce(t *testing.T) {
	enough := errors.New("enough")
	for _, o := range []buffer.RecordsOptions{{}, {RecordBytes: 24}, {RecordBytes: 9}} {
		for i, by := range kinds(o.RecordBytes) {
			n := 5000
			if o.RecordBytes == 24 && by.name == "Sort" {
				n = 80_000 // more than are sorted between two reports
			}
			records := fill(rand.New(rand.NewPCG(1, 2)), inputs[0].key, n, o.RecordBytes)
			r := newRecords(t, &o, records)
			ctx, cancel := context.WithCancelCause(context.Background())
			reports, calls := 0, 0
			all := kindsIn(ctx, o.RecordBytes)
			copy(all, calling(ctx, func() { calls += min(reports, 1) }))
			err := all[i].sort(r, &buffer.SortOptions{Parallel: 1, Progress: func(int, int) { reports++; cancel(enough) }})
			if err != enough || reports != 1 || calls != 0 {
				t.Errorf("%+v, %s: %v, %d reports, %d calls after the first", o, by.name, err, reports, calls)
			}
			wantSame(t, r, records)
		}
	}
}

func TestSortWithADoneContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	enough := errors.New("enough")
	cancel(enough)
	records := someRecords(100, 0)
	r := newRecords(t, nil, records)
	if err := r.SortBy(ctx, nil, nil); err != enough {
		t.Error(err)
	}
	wantRecords(t, r, records)
}

// A comparison that contradicts itself ends, and loses nothing.
func TestContradictoryOrders(t *testing.T) {
	for _, o := range []buffer.RecordsOptions{{}, {RecordBytes: 24}, {RecordBytes: 9}} {
		for name, cmp := range map[string]func(rng *rand.Rand) int{
			"less":    func(*rand.Rand) int { return -1 },
			"greater": func(*rand.Rand) int { return 1 },
			"random":  func(rng *rand.Rand) int { return rng.IntN(3) - 1 },
			"extreme": func(rng *rand.Rand) int { return []int{-1 << 31, 0, 1<<31 - 1}[rng.IntN(3)] },
		} {
			for _, parallel := range []int{1, 4} {
				t.Run(fmt.Sprintf("%+v/%s/%d", o, name, parallel), func(t *testing.T) {
					rng := rand.New(rand.NewPCG(1, 2))
					records := fill(rng, inputs[0].key, 4000, o.RecordBytes)
					if o.RecordBytes == 0 {
						records = append(records, make([]byte, 100_000), make([]byte, 50_000))
					}
					var mu sync.Mutex
					throw := func() int { mu.Lock(); defer mu.Unlock(); return cmp(rng) }
					r := newRecords(t, &o, records)
					so := &buffer.SortOptions{Parallel: parallel}
					must(t, r.Sort(context.Background(), func(a, b []byte) int { return throw() }, so))
					wantSame(t, r, records)
					must(t, r.SortBy(context.Background(), func(a []byte) []byte { return number(uint64(throw())) }, so))
					wantSame(t, r, records)
				})
			}
		}
	}
}

func TestGoexitInAnOrderPasses(t *testing.T) {
	for _, parallel := range []int{1, 3} {
		records := fill(rand.New(rand.NewPCG(1, 2)), inputs[0].key, 10_000, 24)
		r := newRecords(t, &buffer.RecordsOptions{RecordBytes: 24}, records)
		returned := false
		done := make(chan bool)
		go func() {
			defer close(done)
			_ = r.Sort(context.Background(), func(a, b []byte) int { runtime.Goexit(); return 0 }, &buffer.SortOptions{Parallel: parallel})
			returned = true
		}()
		if <-done; returned {
			t.Error("Sort returned")
		}
		wantSame(t, r, records)
	}
}
