// The tests of wazero, on freehold.

package wazero_test

import (
	"testing"

	"github.com/freehold-go/freehold/internal/test/suite"
)

// readsAfterGrow are tests that read a slice of a memory after memory.grow and want its old
// contents.
const readsAfterGrow = "^TestEngine(Compiler|Interpreter)$/^module_memory$"

// Every memory is on freehold. A shared memory gets its capacity at once, as the documentation
// says.
func TestWazerosTests(t *testing.T) {
	m := suite.Copy(t, "github.com/tetratelabs/wazero")
	m.Edit(t, "internal/wasm/memory.go", "\t\"github.com/tetratelabs/wazero/api\"\n", `
	"github.com/freehold-go/freehold"
	freeholdwazero "github.com/freehold-go/freehold/adapters/wazero"
	"github.com/tetratelabs/wazero/api"
`)
	m.Edit(t, "internal/wasm/memory.go", "type waiters struct", `var offHeap = freeholdwazero.New(freehold.Default())

type waiters struct`)
	m.Edit(t, "internal/wasm/memory.go", "\tif allocator != nil {\n", `
	if allocator == nil {
		allocator = offHeap
	}
	if memSec.IsShared {
		capBytes = maxBytes
	}
	if allocator != nil {
`)
	m.Test(t, 2, "./internal/integration_test/spectest/v1")
	if !testing.Short() {
		m.Test(t, 400, "-skip", readsAfterGrow, "./internal/wasm", "./internal/engine/...", "./internal/integration_test/...", "./experimental/...", ".")
	}
}
