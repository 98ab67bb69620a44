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
	"sync"
	"sync/atomic"
	"testing"

	"github.com/freehold-go/freehold/buffer"
)

// calling returns the sorts, which call f before each call of their function.
func calling(f func()) []sorting {
	return []sorting{
		{"Sort", func(r *buffer.Records, o *buffer.SortOptions) error {
			return r.Sort(context.Background(), func(a, b []byte) int { f(); return byKey(keyOf)(a, b) }, o)
		}, byKey(keyOf)},
		{"SortBy", func(r *buffer.Records, o *buffer.SortOptions) error {
			return r.SortBy(context.Background(), func(p []byte) []byte { f(); return keyOf(p) }, o)
		}, byKey(keyOf)},
		{"SortBy copies", func(r *buffer.Records, o *buffer.SortOptions) error {
			return r.SortBy(context.Background(), func(p []byte) []byte { f(); return bytes.Clone(keyOf(p)) }, o)
		}, byKey(keyOf)},
	}
}

// kinds are sorts of records of size bytes, or of any if it is 0, by each algorithm.
func kinds(size int) []sorting {
	all := calling(func() {})
	if size != 0 {
		all = append(all, sortByPart(0, size-4))
	}
	return all
}

// step returns how much later a sort is stopped each time.
func step() int64 {
	if testing.Short() {
		return 3
	}
	return 1
}

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

// stopped calls try with each sort of each layout, which it is to stop at a call of
// the user's function; first at early ones, then later and later, until the sort
// ends before.
func stopped(t *testing.T, try func(t *testing.T, r *buffer.Records, by func(f func()) sorting, at int64, o *buffer.SortOptions) bool) {
	for _, o := range []buffer.RecordsOptions{{}, {RecordBytes: 24}, {RecordBytes: 9}} {
		for i, by := range calling(nil) {
			for _, parallel := range []int{1, 3} {
				t.Run(fmt.Sprintf("%+v/%s/%d", o, by.name, parallel), func(t *testing.T) {
					n := 500
					if parallel > 1 {
						n = 3 * 17 << 10 / max(o.RecordBytes, 32)
					}
					records := fill(rand.New(rand.NewPCG(1, 2)), inputs[0].key, n, o.RecordBytes)
					r := newRecords(t, &o, records)
					for at := int64(1); ; at += at*step() + 1 {
						again := try(t, r, func(f func()) sorting { return calling(f)[i] }, at, &buffer.SortOptions{Parallel: parallel})
						wantSame(t, r, records)
						if !again {
							return
						}
						r.Clear()
						for _, p := range records {
							must(t, r.AppendBytes(p))
						}
					}
				})
			}
		}
	}
}

func TestPanicsOfTheOrderPassAndLoseNothing(t *testing.T) {
	stopped(t, func(t *testing.T, r *buffer.Records, by func(func()) sorting, at int64, o *buffer.SortOptions) (again bool) {
		var calls atomic.Int64
		defer func() {
			if p := recover(); p != nil {
				if again = true; p != "mine" {
					panic(p)
				}
			}
		}()
		must(t, by(func() {
			if calls.Add(1) >= at {
				panic("mine")
			}
		}).sort(r, o))
		return false
	})
}

func TestCancelledSortsLoseNothing(t *testing.T) {
	for _, o := range []buffer.RecordsOptions{{}, {RecordBytes: 24}, {RecordBytes: 9}} {
		for _, parallel := range []int{1, 3} {
			n := 3 * 17 << 10 / max(o.RecordBytes, 32)
			records := fill(rand.New(rand.NewPCG(1, 2)), inputs[0].key, n, o.RecordBytes)
			for i, name := range []string{"Sort", "SortBy"} {
				t.Run(fmt.Sprintf("%+v/%s/%d", o, name, parallel), func(t *testing.T) {
					for at := int64(1); ; at += at*step() + 1 {
						r := newRecords(t, &o, records)
						ctx, cancel := context.WithCancel(context.Background())
						var calls atomic.Int64
						f := func() {
							if calls.Add(1) == at {
								cancel()
								runtime.Gosched()
							}
						}
						var err error
						so := &buffer.SortOptions{Parallel: parallel}
						switch i {
						case 0:
							err = r.Sort(ctx, func(a, b []byte) int { f(); return byKey(keyOf)(a, b) }, so)
						case 1:
							err = r.SortBy(ctx, func(p []byte) []byte { f(); return keyOf(p) }, so)
						}
						wantSame(t, r, records)
						if err != nil && err != context.Canceled {
							t.Fatal(err)
						}
						if calls.Load() < at {
							must(t, err)
							cancel()
							return
						}
					}
				})
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

func TestSortsCancelledByProgress(t *testing.T) {
	records := fill(rand.New(rand.NewPCG(1, 2)), inputs[0].key, 15_000, 24)
	enough := errors.New("enough")
	for step := 1; ; step += step/2 + 1 {
		r := newRecords(t, &buffer.RecordsOptions{RecordBytes: 24}, records)
		ctx, cancel := context.WithCancelCause(context.Background())
		calls := 0
		err := r.SortBy(ctx, nil, &buffer.SortOptions{Parallel: 1 + 2*(step%2), Progress: func(int, int) {
			if calls++; calls == step {
				cancel(enough)
			}
		}})
		cancel(nil)
		wantSame(t, r, records)
		if calls < step {
			must(t, err)
			break
		}
		if err != nil && err != enough {
			t.Fatal(err)
		}
	}
}

// After a report that has ended the context the sort calls nobody any more, and
// returns the cause.
func TestProgressStopsASortAtOnce(t *testing.T) {
	enough := errors.New("enough")
	for _, o := range []buffer.RecordsOptions{{}, {RecordBytes: 24}, {RecordBytes: 9}} {
		n := 5000
		if o.RecordBytes == 24 {
			n = 80_000 // more than are sorted between two reports
		}
		records := fill(rand.New(rand.NewPCG(1, 2)), inputs[0].key, n, o.RecordBytes)
		for i, name := range []string{"Sort", "SortBy", "SortByPart"} {
			if i == 2 && o.RecordBytes == 0 {
				continue
			}
			r := newRecords(t, &o, records)
			ctx, cancel := context.WithCancelCause(context.Background())
			reports, calls := 0, 0
			f := func() {
				if reports > 0 {
					calls++
				}
			}
			so := &buffer.SortOptions{Parallel: 1, Progress: func(int, int) { reports++; cancel(enough) }}
			var err error
			switch i {
			case 0:
				err = r.Sort(ctx, func(a, b []byte) int { f(); return byKey(keyOf)(a, b) }, so)
			case 1:
				err = r.SortBy(ctx, func(p []byte) []byte { f(); return keyOf(p) }, so)
			case 2:
				err = r.SortByPart(ctx, 0, 8, so)
			}
			if err != enough || reports != 1 || calls != 0 {
				t.Errorf("%+v, %s: %v, %d reports, %d calls after the first", o, name, err, reports, calls)
			}
			wantSame(t, r, records)
		}
	}
}

func TestPanicsOfProgressPassAndLoseNothing(t *testing.T) {
	for _, o := range []buffer.RecordsOptions{{}, {RecordBytes: 24}} {
		records := fill(rand.New(rand.NewPCG(1, 2)), inputs[0].key, 15_000, o.RecordBytes)
		for _, by := range kinds(o.RecordBytes) {
			for _, parallel := range []int{1, 3} {
				r := newRecords(t, &o, records)
				for at, passed := 1, true; passed; at *= 8 {
					calls := 0
					func() {
						defer func() { passed = recover() == "mine" }()
						must(t, by.sort(r, &buffer.SortOptions{Parallel: parallel, Progress: func(int, int) {
							if calls++; calls == at {
								panic("mine")
							}
						}}))
					}()
					wantSame(t, r, records)
					if !passed && calls >= at {
						t.Errorf("%s: the panic did not pass", by.name)
					}
					r = newRecords(t, &o, records)
				}
			}
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
