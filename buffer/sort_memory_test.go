// What sorts take: extra memory, files, arguments.

package buffer_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/buffer"
	"github.com/freehold-go/freehold/internal/panics"
)

// Sorting takes half of the data's size and little more, and gives it back.
func TestExtraMemory(t *testing.T) {
	for _, o := range []buffer.RecordsOptions{{}, {RecordBytes: 24}, {RecordBytes: 9}} {
		for _, parallel := range []int{1, 4} {
			records := fill(rand.New(rand.NewPCG(1, 2)), inputs[0].key, 4000, o.RecordBytes)
			r := newRecords(t, &o, records)
			size := 0
			for _, p := range records {
				size += len(p)
				if o.RecordBytes == 0 {
					size += 4
				}
			}
			for _, by := range kinds(o.RecordBytes) {
				counter := freehold.NewTagged(alloctest.New(t), "")
				must(t, by.sort(r, &buffer.SortOptions{Parallel: parallel, Scratch: counter}))
				if c := counter.Counts(); c.Allocs != 1 || c.Live != 0 || c.PeakBytes > size/2+parallel<<10 {
					t.Errorf("%+v, %s: %+v for %d bytes", o, by.name, c, size)
				}
			}
		}
	}
}

func TestSortWithoutExtraMemory(t *testing.T) {
	records := someRecords(1000, 0)
	for _, by := range kinds(0) {
		r := newRecords(t, nil, records)
		if err := by.sort(r, &buffer.SortOptions{Scratch: alloctest.FailAfter(alloctest.New(t), 0)}); !errors.Is(err, freehold.ErrOutOfMemory) {
			t.Errorf("%s: %v", by.name, err)
		}
		wantRecords(t, r, records)
	}
}

func TestSortWithoutATemporaryFile(t *testing.T) {
	mapsFiles(t)
	if runtime.GOOS == "windows" {
		t.Skip("the directory has the buffer's own file")
	}
	dir := t.TempDir()
	b := newBuffer(t, &buffer.Options{SpillAfter: 1, Dir: dir})
	r := must1(buffer.NewRecords(b, nil))
	records := someRecords(1000, 0)
	for _, p := range records {
		must(t, r.AppendBytes(p))
	}
	must(t, os.Remove(dir))
	if err := r.SortBy(context.Background(), nil, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a directory for it: %v", err)
	}
	wantRecords(t, r, records)
}

// A length that changed since is an error, and nothing has moved.
func TestSortOfChangedLengths(t *testing.T) {
	for _, tt := range []struct {
		length byte // of the second record, which has 9 bytes
		want   string
	}{
		{200, "no record begins at offset 13, or it is corrupt"},
		{22, "there are 4, and 5 were appended"},
	} {
		b := newBuffer(t, nil)
		r := must1(buffer.NewRecords(b, nil))
		for range 5 {
			must(t, r.AppendBytes([]byte("my record")))
		}
		b.Bytes()[13] = tt.length
		data := bytes.Clone(b.Bytes())
		err := r.SortBy(context.Background(), nil, nil)
		if !errors.Is(err, buffer.ErrCorrupt) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v, want %v", err, tt.want)
		}
		wantData(t, b, data)
	}
}

func TestSortOfABufferThatOthersTruncated(t *testing.T) {
	b := newBuffer(t, nil)
	r := must1(buffer.NewRecords(b, &buffer.RecordsOptions{RecordBytes: 8}))
	for range 5 {
		must(t, r.AppendBytes([]byte("8 bytes.")))
	}
	b.Truncate(20)
	err := r.SortBy(context.Background(), nil, nil)
	if !errors.Is(err, buffer.ErrCorrupt) || !strings.Contains(err.Error(), "there are 2, and 5 were appended") {
		t.Error(err)
	}
}

func TestSortOfAFileThatIsTruncated(t *testing.T) {
	mapsFiles(t)
	for _, o := range []buffer.RecordsOptions{{}, {RecordBytes: 24}, {RecordBytes: 9}} {
		for _, parallel := range []int{1, 4} {
			for i, by := range kinds(o.RecordBytes) {
				t.Run(fmt.Sprintf("%+v/%s/%d", o, by.name, parallel), func(t *testing.T) {
					path := saved(t, nil)
					b := must1(buffer.Open(path, nil))
					defer b.Close()
					r := must1(buffer.NewRecords(b, &o))
					for _, p := range fill(rand.New(rand.NewPCG(1, 2)), inputs[0].key, 8000, o.RecordBytes) {
						must(t, r.AppendBytes(p))
					}
					var calls atomic.Int64
					cut := func() {
						if calls.Add(1) == 5000 {
							_ = os.Truncate(path, 50_000)
						}
					}
					so := &buffer.SortOptions{Parallel: parallel}
					if all := calling(context.Background(), cut); i < len(all) {
						by = all[i]
					} else { // it calls nothing else
						so.Progress = func(int, int) { _ = os.Truncate(path, 50_000) }
					}
					err := by.sort(r, so)
					if info, statErr := os.Stat(path); statErr == nil && info.Size() > 50_000 {
						t.Skip("a mapped file cannot be truncated")
					}
					if !errors.Is(err, io.ErrUnexpectedEOF) {
						t.Errorf("%v", err)
					}
				})
			}
		}
	}
}

func TestMisuseOfSortsPanics(t *testing.T) {
	ctx := context.Background()
	r := newRecords(t, nil, someRecords(3, 0))
	fixed := newRecords(t, &buffer.RecordsOptions{RecordBytes: 8}, someRecords(3, 8))
	part := func(r *buffer.Records, from, to int) {
		r.SortBy(ctx, nil, &buffer.SortOptions{From: from, To: to})
	}
	closed := buffer.New(alloctest.New(t), nil)
	rc := must1(buffer.NewRecords(closed, nil))
	must(t, closed.Close())
	for _, tt := range []struct {
		want string
		call func()
	}{
		{"freehold: buffer.Records.Sort: cmp is nil", func() { r.Sort(ctx, nil, nil) }},
		{"freehold: buffer.Records.SortByPart: the records have no RecordBytes", func() { r.SortByPart(ctx, 0, 1, nil) }},
		{"freehold: buffer.Records.SortByPart: offset 9, want 0 to 8", func() { fixed.SortByPart(ctx, 9, 0, nil) }},
		{"freehold: buffer.Records.SortByPart: the key is 3 bytes from offset 6, and records have 8 bytes", func() { fixed.SortByPart(ctx, 6, 3, nil) }},
		{"freehold: buffer.Records.SortByUint64: order is nil", func() { fixed.SortByUint64(ctx, 0, nil, nil) }},
		{"freehold: buffer.Records.SortByUint64: the key is 8 bytes from offset 1, and records have 8 bytes", func() { fixed.SortByUint64(ctx, 1, binary.BigEndian, nil) }},
		//lint:ignore SA1012 the panic is tested
		{"freehold: buffer.Records.SortBy: ctx is nil", func() { r.SortBy(nil, nil, nil) }},
		{"freehold: buffer.Records.SortBy: Parallel -1, want 0 or more", func() { r.SortBy(ctx, nil, &buffer.SortOptions{Parallel: -1}) }},
		{"freehold: buffer.Records.SortBy: the buffer is closed", func() { rc.SortBy(ctx, nil, nil) }},
		{"freehold: buffer.Records.SortBy: To 1000, want 0 to 33", func() { part(r, 0, 1000) }},
		{"freehold: buffer.Records.SortBy: From 9, want 0 to 8", func() { part(r, 9, 8) }},
		{"freehold: buffer.Records.SortBy: From 9, where no record begins", func() { part(fixed, 9, 16) }},
		{"freehold: buffer.Records.Sort: the buffer is closed", func() { rc.Sort(ctx, bytes.Compare, nil) }},
	} {
		panics.Want(t, tt.want, tt.call)
	}
	wantRecords(t, r, someRecords(3, 0))
}
