package arrow_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/freehold-go/freehold"
	freeholdarrow "github.com/freehold-go/freehold/adapters/arrow"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/internal/panics"
	"github.com/freehold-go/freehold/internal/test/suite"
)

var _ memory.Allocator = (*freeholdarrow.Allocator)(nil)

func Example() {
	heap := freehold.NewHeap(&freehold.HeapOptions{Name: "arrow", MaxBytes: 64 << 20})
	defer heap.Close()
	b := array.NewInt64Builder(freeholdarrow.New(heap))
	defer b.Release()
	b.AppendValues([]int64{1, 2, 3}, nil)
	column := b.NewInt64Array()
	fmt.Println(column, heap.Owns(column.Data().Buffers()[1].Bytes()))
	column.Release()
	fmt.Println(heap.Stats().LiveBytes, "bytes live")
	// Output:
	// [1 2 3] true
	// 0 bytes live
}

func ExampleNew_scope() {
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	query := freehold.NewScope(heap)
	b := array.NewInt64Builder(freeholdarrow.New(query))
	b.AppendValues([]int64{1, 2, 3}, nil)
	fmt.Println(b.NewInt64Array()) // nobody releases it, nor the builder
	fmt.Println(query.Close(), "buffers were not released")
	fmt.Println(heap.Stats().LiveBytes, "bytes live")
	// Output:
	// [1 2 3]
	// 2 buffers were not released
	// 0 bytes live
}

// Buffers are aligned, keep their contents, and are zero elsewhere, even after a shrink and a
// growth.
func TestReallocate(t *testing.T) {
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	mem := freeholdarrow.New(heap)
	var b []byte
	for _, size := range []int{1, 64, 100, 70, 4096, 100, 300, 1 << 20, 20 << 20, 64, 0, 64} {
		old := len(b)
		b = mem.Reallocate(size, b)
		kept := min(old, size)
		if len(b) != size || bytes.Count(b[:kept], []byte{7}) != kept || bytes.Count(b[kept:], []byte{0}) != size-kept {
			t.Fatalf("from %d to %d bytes: %d bytes, not zero behind what was kept", old, size, len(b))
		}
		if size > 0 && uintptr(unsafe.Pointer(&b[0]))%64 != 0 {
			t.Errorf("a buffer of %d bytes begins at %p", size, b)
		}
		for i := range b {
			b[i] = 7
		}
	}
	mem.Free(b[:1]) // arrow-go may shorten the slice
	if live := heap.Stats().LiveBytes; live != 0 {
		t.Errorf("%d bytes are live in the end", live)
	}
}

// The bytes of Allocate are zero and begin at a multiple of 64, even in a reused block. So are
// the bytes of Reallocate, even for a shortened buffer.
func TestReusedBlocks(t *testing.T) {
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	mem := freeholdarrow.New(heap)
	var buffers [20][]byte
	for range 3 {
		for i := range buffers {
			b := mem.Allocate(100)
			if bytes.Count(b, []byte{0}) != 100 || uintptr(unsafe.Pointer(&b[0]))%64 != 0 {
				t.Errorf("Allocate: %p has %x", b, b)
			}
			copy(b, "text")
			b = mem.Reallocate(1000, b[:4])
			if string(b[:4]) != "text" || bytes.Count(b[100:], []byte{0}) != 900 || uintptr(unsafe.Pointer(&b[0]))%64 != 0 {
				t.Errorf("Reallocate: %p has %x", b, b)
			}
			b = mem.Reallocate(100, b)
			if uintptr(unsafe.Pointer(&b[0]))%64 != 0 {
				t.Errorf("Reallocate to less: %p", b)
			}
			buffers[i] = b
		}
		for _, b := range buffers {
			for i := range b[:cap(b)] {
				b[:cap(b)][i] = 7
			}
			mem.Free(b)
		}
	}
	if live := heap.Stats().LiveBytes; live != 0 {
		t.Errorf("%d bytes are live in the end", live)
	}
}

// record builds a record of n rows.
func record(mem memory.Allocator, n int) arrow.RecordBatch {
	b := array.NewRecordBuilder(mem, arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "name", Type: arrow.BinaryTypes.String},
	}, nil))
	defer b.Release()
	for i := range n {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		b.Field(1).(*array.StringBuilder).Append("a name of 24 characters.")
	}
	return b.NewRecordBatch()
}

// At a limit a builder panics with an error, and a reader of ipc returns it. Neither leaks.
func TestLimit(t *testing.T) {
	limit := freehold.NewLimit(alloctest.New(t), 10_000)
	mem := freeholdarrow.New(limit)
	func() {
		defer func() {
			if err, _ := recover().(error); !errors.Is(err, freehold.ErrOutOfMemory) {
				t.Errorf("panic: %v", err)
			}
		}()
		record(mem, 1000)
	}()
	if limit.Used() != 0 {
		t.Errorf("%d bytes are live after the panic", limit.Used())
	}

	var file bytes.Buffer
	large := record(memory.DefaultAllocator, 1000)
	w := ipc.NewWriter(&file, ipc.WithSchema(large.Schema()))
	if err := errors.Join(w.Write(large), w.Close()); err != nil {
		t.Fatal(err)
	}
	r, err := ipc.NewReader(&file, ipc.WithAllocator(mem))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	if _, err := r.Read(); err == nil || !strings.Contains(err.Error(), freehold.ErrOutOfMemory.Error()) {
		t.Errorf("Read: %v", err) // ipc keeps only the panic's text
	}
}

// recorder is a test that records its errors.
type recorder struct {
	*testing.T
	errors []string
	end    func()
}

func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}
func (r *recorder) Cleanup(f func()) { r.end = f }

// The report of an unreleased record names the code that built it. A double free panics.
func TestLeakAndDoubleFree(t *testing.T) {
	notes := &recorder{T: t}
	mem := freeholdarrow.New(alloctest.New(notes))
	record(mem, 10)
	notes.end()
	if all := strings.Join(notes.errors, "\n"); !strings.Contains(all, "leak of ") || !strings.Contains(all, "arrow_test.record") {
		t.Errorf("reports: %q", all)
	}

	mem = freeholdarrow.New(freehold.Default())
	b := mem.Allocate(100)
	mem.Free(b)
	panics.Want(t, "freehold: Heap.Free: ...", func() { mem.Free(b) })
	panics.Want(t, "freehold: arrow.New: next is nil", func() { freeholdarrow.New(nil) })
}

// Record batches of 100,000 rows, 3.4 MB each, are built, written as ipc and released one after
// another.
func BenchmarkBatches(b *testing.B) {
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	for _, row := range []struct {
		name string
		mem  memory.Allocator
	}{{"default", memory.DefaultAllocator}, {"freehold", freeholdarrow.New(heap)}} {
		b.Run("allocator="+row.name, func(b *testing.B) {
			mem, end := row.mem, suite.Footprint(b)
			for b.Loop() {
				batch := record(mem, 100_000)
				w := ipc.NewWriter(io.Discard, ipc.WithSchema(batch.Schema()), ipc.WithAllocator(mem))
				if err := errors.Join(w.Write(batch), w.Close()); err != nil {
					b.Fatal(err)
				}
				batch.Release()
			}
			end()
		})
	}
}
