// Command example serves gRPC's health checks with message buffers off-heap.
package main

import (
	"fmt"
	"net"
	"os"

	"github.com/freehold-go/freehold"
	freeholdgrpc "github.com/freehold-go/freehold/adapters/grpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/experimental"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
)

func main() {
	heap := freehold.NewHeap(&freehold.HeapOptions{Name: "messages", MaxBytes: 256 << 20})
	experimental.SetDefaultBufferPool(freeholdgrpc.New(heap)) // before the first server
	server := grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	listener, err := net.Listen("tcp", "localhost:50051")
	if err == nil {
		err = server.Serve(listener)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
