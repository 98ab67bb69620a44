// The tests of grpc-go, on freehold.

package grpc_test

import (
	"testing"

	"github.com/freehold-go/freehold/internal/test/suite"
)

// Most of gRPC's tests use the pool of package leakcheck. The edit makes that pool allocate from
// freehold.
func TestGRPCsTests(t *testing.T) {
	m := suite.Copy(t, "google.golang.org/grpc")
	m.Edit(t, "internal/leakcheck/leakcheck.go", "defaultPool := mem.DefaultBufferPool()", "defaultPool := mem.BufferPool(freeholdgrpc.New(freehold.Default()))")
	m.Edit(t, "internal/leakcheck/leakcheck.go", "\t\"google.golang.org/grpc/internal\"\n", `
	"github.com/freehold-go/freehold"
	freeholdgrpc "github.com/freehold-go/freehold/adapters/grpc"
	"google.golang.org/grpc/internal"
`)
	t.Setenv("FREEHOLD_DEBUG", "quarantine=20000000") // it fills freed buffers, so a late read fails
	if testing.Short() {
		m.Test(t, 3, "./mem", "./encoding/proto", "./internal/transport", "-run", "^Test$/(Large|Message|Stream|Write)|^Test[^/]+$")
		return
	}
	m.Test(t, 10, "-trimpath=false", "./mem", "./encoding/...", "./internal/transport", ".") // they read files by path
	m.Test(t, 1, "-trimpath=false", "./test")
}
