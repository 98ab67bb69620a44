// Command example runs a WebAssembly module whose memory is on a heap with a limit.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/freehold-go/freehold"
	freeholdwazero "github.com/freehold-go/freehold/adapters/wazero"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: example program.wasm")
	}
	heap := freehold.NewHeap(&freehold.HeapOptions{Name: "guests", MaxBytes: 1 << 30})
	ctx := experimental.WithMemoryAllocator(context.Background(), freeholdwazero.New(heap))
	runtime := wazero.NewRuntime(ctx)
	defer runtime.Close(ctx)
	wasi_snapshot_preview1.MustInstantiate(ctx, runtime)
	freehold.Must(runtime.InstantiateWithConfig(ctx, freehold.Must(os.ReadFile(os.Args[1])), wazero.NewModuleConfig().WithStdout(os.Stdout)))
	fmt.Println(heap.Stats().LiveBytes>>10, "KiB off-heap")
}
