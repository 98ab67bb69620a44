// Command example serves gRPC's health checks with message buffers off-heap, and asks for one.
package main

import (
	"context"
	"fmt"
	"net"
	"strings"

	"github.com/freehold-go/freehold"
	freeholdgrpc "github.com/freehold-go/freehold/adapters/grpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/experimental"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
)

func main() {
	heap := freehold.NewHeap(&freehold.HeapOptions{Name: "messages", MaxBytes: 256 << 20})
	experimental.SetDefaultBufferPool(freeholdgrpc.New(heap)) // before the first server
	server, status := grpc.NewServer(), health.NewServer()
	grpc_health_v1.RegisterHealthServer(server, status)
	long := strings.Repeat("service ", 5000) // or gRPC has no buffer for the message
	status.SetServingStatus(long, grpc_health_v1.HealthCheckResponse_SERVING)
	listener := freehold.Must(net.Listen("tcp", "localhost:0"))
	defer server.Stop()
	go server.Serve(listener)

	client := freehold.Must(grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials())))
	defer client.Close()
	answer := freehold.Must(grpc_health_v1.NewHealthClient(client).Check(context.Background(), &grpc_health_v1.HealthCheckRequest{Service: long}))
	fmt.Println(answer.Status, heap.Stats().SlowAllocs > 0)
}
