package wazero_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/freehold-go/freehold"
	freeholdwazero "github.com/freehold-go/freehold/adapters/wazero"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/internal/panics"
	"github.com/freehold-go/freehold/internal/test/suite"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// guest is a module with a memory of 1 to 16,384 pages of 64 KiB:
//
//	(memory (export "memory") 1 16384)
//	(func (export "grow") (param i32) (result i32) (memory.grow (local.get 0)))
var guest = []byte("\x00asm\x01\x00\x00\x00" + "\x01\x06\x01\x60\x01\x7f\x01\x7f" + "\x03\x02\x01\x00" + "\x05\x06\x01\x01\x01\x80\x80\x01" +
	"\x07\x11\x02\x06memory\x02\x00\x04grow\x00\x00" + "\x0a\x08\x01\x06\x00\x20\x00\x40\x00\x0b")

// instantiate returns the guest with memory from a. closed closes its runtime.
func instantiate(a freehold.Allocator, config wazero.RuntimeConfig) (module api.Module, closed func()) {
	ctx := context.Background()
	if a != nil {
		ctx = experimental.WithMemoryAllocator(ctx, freeholdwazero.New(a))
	}
	r := wazero.NewRuntimeWithConfig(ctx, config)
	return freehold.Must(r.Instantiate(ctx, guest)), func() { r.Close(ctx) }
}

// grow grows the guest's memory and returns its old number of pages, or -1 on failure.
func grow(module api.Module, pages int) int {
	result := freehold.Must(module.ExportedFunction("grow").Call(context.Background(), uint64(pages)))
	return int(int32(result[0]))
}

func Example() {
	heap := freehold.NewHeap(&freehold.HeapOptions{Name: "guests", MaxBytes: 8 << 20})
	defer heap.Close()
	ctx := experimental.WithMemoryAllocator(context.Background(), freeholdwazero.New(heap))
	runtime := wazero.NewRuntime(ctx)
	module := freehold.Must(runtime.Instantiate(ctx, guest))
	fmt.Println(module.Memory().Size(), heap.Stats().LiveBytes)
	_, ok := module.Memory().Grow(200) // 12.5 MiB
	fmt.Println(ok)
	runtime.Close(ctx)
	fmt.Println(heap.Stats().LiveBytes)
	// Output:
	// 65536 65536
	// false
	// 0
}

// A memory keeps its contents and gets zeros behind them, in place or moved, and is freed in the
// end.
func TestGrow(t *testing.T) {
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	for name, config := range map[string]wazero.RuntimeConfig{
		"interpreter": wazero.NewRuntimeConfigInterpreter(),
		"compiler":    wazero.NewRuntimeConfig(),
		"capacity":    wazero.NewRuntimeConfigInterpreter().WithMemoryCapacityFromMax(true),
	} {
		for _, a := range []freehold.Allocator{heap, alloctest.New(t)} {
			t.Run(fmt.Sprintf("%s/%T", name, a), func(t *testing.T) {
				if _, ok := a.(*alloctest.Allocator); ok && name == "capacity" {
					return // alloctest cannot allocate 1 GiB
				}
				module, closed := instantiate(a, config)
				defer closed()
				for i, pages := range []int{1, 15, 200, 1000} {
					before := int(module.Memory().Size())
					all, _ := module.Memory().Read(0, uint32(before))
					for j := range all {
						all[j] = byte(i + 1)
					}
					if got := grow(module, pages); got != before>>16 {
						t.Fatalf("grow by %d pages: %d, want %d", pages, got, before>>16)
					}
					all, _ = module.Memory().Read(0, module.Memory().Size())
					if bytes.Count(all[:before], []byte{byte(i + 1)}) != before || bytes.Count(all[before:], []byte{0}) != pages<<16 {
						t.Fatalf("grow by %d pages: not zero behind what was kept", pages)
					}
				}
			})
		}
	}
	if live := heap.Stats().LiveBytes; live != 0 {
		t.Errorf("%d bytes are live in the end", live)
	}
}

// At a limit the guest cannot grow and goes on. Instantiating a guest that gets no memory
// panics.
func TestLimit(t *testing.T) {
	limit := freehold.NewLimit(alloctest.New(t), 1<<20)
	module, closed := instantiate(limit, wazero.NewRuntimeConfigInterpreter())
	if got := grow(module, 16); got != -1 {
		t.Errorf("grow beyond the limit: %d", got)
	}
	if got := grow(module, 1); got != 1 || module.Memory().Size() != 2<<16 {
		t.Errorf("grow within the limit: %d, to %d bytes", got, module.Memory().Size())
	}
	closed()
	if limit.Used() != 0 {
		t.Errorf("%d bytes are live after Close", limit.Used())
	}
	defer func() {
		if err, _ := recover().(error); !errors.Is(err, freehold.ErrOutOfMemory) {
			t.Errorf("panic: %v", err)
		}
	}()
	instantiate(freehold.NewLimit(limit, 1), wazero.NewRuntimeConfigInterpreter())
}

// Reallocate refuses sizes beyond an int, and a second Free is a no-op.
func TestMemory(t *testing.T) {
	m := freeholdwazero.New(freehold.Default()).Allocate(1<<16, 1<<32)
	if m.Reallocate(1<<63) != nil {
		t.Error("a memory of 2^63 bytes")
	}
	m.Free()
	m.Free()
	panics.Want(t, "freehold: wazero.New: next is nil", func() { freeholdwazero.New(nil) })
}

// A memory grows from 64 KiB to 1 GiB in steps of 1 MiB, and each step is touched.
func BenchmarkGrow(b *testing.B) {
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	for _, row := range []struct {
		name string
		a    freehold.Allocator
	}{{"default", nil}, {"freehold", heap}} {
		b.Run("allocator="+row.name, func(b *testing.B) {
			end := suite.Footprint(b)
			for b.Loop() {
				module, closed := instantiate(row.a, wazero.NewRuntimeConfig())
				for grow(module, 16) >= 0 {
					size := module.Memory().Size()
					for at := size - 1<<20; at < size; at += 4096 {
						module.Memory().WriteByte(at, 1)
					}
				}
				closed()
			}
			end()
		})
	}
}
