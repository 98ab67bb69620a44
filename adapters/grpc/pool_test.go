package grpc_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/freehold-go/freehold"
	freeholdgrpc "github.com/freehold-go/freehold/adapters/grpc"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/internal/panics"
	"github.com/freehold-go/freehold/internal/test/suite"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/experimental"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

var _ mem.BufferPool = (*freeholdgrpc.Pool)(nil)

var grpcs = mem.DefaultBufferPool() // before Example sets another

func Example() {
	heap := freehold.NewHeap(&freehold.HeapOptions{Name: "grpc", MaxBytes: 256 << 20})
	pool := freeholdgrpc.New(heap)
	experimental.SetDefaultBufferPool(pool)
	b := mem.Copy(make([]byte, 10_000), mem.DefaultBufferPool())
	fmt.Println(heap.Owns(b.ReadOnlyData()))
	b.Free()
	fmt.Println(heap.Stats().LiveBytes)
	// Output:
	// true
	// 0
}

// connect returns a client of an echo server. Echo replies once, and Flood as often as it can.
// Both sides receive into pool.
func connect(t testing.TB, pool mem.BufferPool) *grpc.ClientConn {
	t.Helper()
	listener := bufconn.Listen(1 << 20)
	server := grpc.NewServer(experimental.BufferPool(pool), grpc.MaxRecvMsgSize(64<<20))
	server.RegisterService(&grpc.ServiceDesc{ServiceName: "echo", HandlerType: (*any)(nil), Methods: []grpc.MethodDesc{{
		MethodName: "Echo",
		Handler: func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			in := &wrapperspb.BytesValue{}
			return in, decode(in)
		},
	}}, Streams: []grpc.StreamDesc{{
		StreamName: "Flood", ClientStreams: true, ServerStreams: true,
		Handler: func(_ any, stream grpc.ServerStream) error {
			in := &wrapperspb.BytesValue{}
			err := stream.RecvMsg(in)
			for err == nil {
				err = stream.SendMsg(in)
			}
			return err
		},
	}}}, nil)
	go server.Serve(listener)
	client, err := grpc.NewClient("passthrough:", grpc.WithTransportCredentials(insecure.NewCredentials()), experimental.WithBufferPool(pool),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20)),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.Close()
		server.Stop()
	})
	return client
}

// echo returns a function that calls Echo of connect's server.
func echo(t testing.TB, pool mem.BufferPool) (call func(message []byte) ([]byte, error)) {
	client := connect(t, pool)
	return func(message []byte) ([]byte, error) {
		out := &wrapperspb.BytesValue{}
		err := client.Invoke(context.Background(), "/echo/Echo", wrapperspb.Bytes(message), out)
		return out.Value, err
	}
}

// Messages of all sizes arrive, and no buffer is leaked, freed twice or written late.
func TestMessages(t *testing.T) {
	a := alloctest.New(t) // its checks run after the cleanups of echo
	counted := freehold.NewTagged(a, "messages")
	call := echo(t, freeholdgrpc.New(counted))
	for _, size := range []int{0, 1, 1000, 1024, 1025, 40_000, 1 << 20, 3 << 20} {
		message := make([]byte, size)
		for i := range message {
			message[i] = byte(i)
		}
		got, err := call(message)
		if err != nil || string(got) != string(message) {
			t.Fatalf("%d bytes came back as %d: %v", size, len(got), err)
		}
	}
	if n := counted.Counts().Allocs; n == 0 {
		t.Error("no message was off-heap")
	}
}

// Cancelled streams, streams past their deadline, and streams on a closed connection leave
// unread buffers on both sides. All of the buffers are freed.
func TestStreamsThatEndEarly(t *testing.T) {
	counted := freehold.NewTagged(alloctest.New(t), "streams")
	pool := freeholdgrpc.New(counted)
	experimental.SetDefaultBufferPool(pool)
	defer experimental.SetDefaultBufferPool(grpcs)
	message := wrapperspb.Bytes(make([]byte, 40_000))
	for range 5 {
		client := connect(t, pool)
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+i%2*50)*time.Millisecond)
				if i == 0 { // this stream has time for its message
					ctx, cancel = context.WithCancel(context.Background())
				}
				defer cancel()
				stream, err := client.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, "/echo/Flood")
				for j := 0; err == nil && j < 1+3*i; j++ { // the server reads one message
					err = stream.SendMsg(message)
				}
				for j := 0; err == nil && j < i; j++ {
					err = stream.RecvMsg(&wrapperspb.BytesValue{})
				}
			})
		}
		wg.Wait()
		client.Close()
	}
	if counted.Counts().Allocs == 0 {
		t.Error("no buffer was off-heap")
	}
	for counted.Counts().Live > 0 { // gRPC has dropped the rest
		runtime.GC()
	}
}

// Buffers beyond a limit are Go memory, and so are buffers that gRPC does not return.
func TestGet(t *testing.T) {
	limit := freehold.NewLimit(alloctest.New(t), 10_000)
	pool := freeholdgrpc.New(limit)
	first, beyond, short := pool.Get(8000), pool.Get(8000), pool.Get(1024)
	if len(*first) != 8000 || !limit.Owns(*first) || len(*beyond) != 8000 || limit.Owns(*beyond) || len(*short) != 1024 || limit.Owns(*short) {
		t.Errorf("%d, %d and %d bytes; %d are off-heap", len(*first), len(*beyond), len(*short), limit.Used())
	}
	*first = (*first)[:10] // Put may get a prefix
	for _, b := range []*[]byte{first, beyond, short} {
		pool.Put(b)
	}
	if limit.Used() != 0 {
		t.Errorf("%d bytes are live", limit.Used())
	}
}

// Buffers are zero, even in reused blocks.
func TestGetClears(t *testing.T) {
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	pool := freeholdgrpc.New(heap)
	for range 10 {
		b := pool.Get(5000)
		if n := bytes.Count(*b, []byte{0}); n != 5000 {
			t.Fatalf("%d of 5000 bytes are zero", n)
		}
		for i := range *b {
			(*b)[i] = 7
		}
		pool.Put(b)
	}
	if live := heap.Stats().LiveBytes; live != 0 {
		t.Errorf("%d bytes are live", live)
	}
}

// A second Put of a buffer through another pointer panics. Through the same pointer it is a
// no-op.
func TestDoublePut(t *testing.T) {
	pool := freeholdgrpc.New(freehold.Default())
	b := pool.Get(5000)
	other := *b
	pool.Put(b)
	pool.Put(b)
	panics.Want(t, "freehold: Heap.Free: ...", func() { pool.Put(&other) })
	panics.Want(t, "freehold: grpc.New: next is nil", func() { freeholdgrpc.New(nil) })
}

// The collector frees two dropped buffers, and not the one that is still held.
func TestDroppedBuffers(t *testing.T) {
	limit := freehold.NewLimit(freehold.Default(), 1<<20)
	pool := freeholdgrpc.New(limit)
	kept := pool.Get(5000)
	pool.Get(6000)
	pool.Get(7000)
	pool.DropStale(*kept)
	for limit.Used() != 5000 { // until the cleanups have run
		runtime.GC()
	}
	pool.Put(kept)
	if limit.Used() != 0 {
		t.Errorf("%d bytes are live", limit.Used())
	}
}

// A collection during Put does not free the buffer a second time, even if the caller has dropped
// it already.
func TestCollectionDuringPut(t *testing.T) {
	limit := freehold.NewLimit(freehold.Default(), 1<<20)
	pool := freeholdgrpc.New(limit)
	collected := false
	defer freeholdgrpc.AtPut(func() {
		collected = true
		pool.Get(6000) // the collection that frees this one would also free the other
		for limit.Used() > 5000 {
			runtime.GC()
		}
	})()
	pool.Put(pool.Get(5000))
	if !collected || limit.Used() != 0 {
		t.Errorf("%d bytes are live, collected: %t", limit.Used(), collected)
	}
}

// Messages of 40 KB and of 3 MB are echoed on eight goroutines.
func BenchmarkEcho(b *testing.B) {
	heap := freehold.NewHeap(nil)
	for _, size := range []int{40_000, 3_000_000} {
		message := make([]byte, size)
		for _, row := range []struct {
			name string
			pool mem.BufferPool
		}{{"default", grpcs}, {"freehold", freeholdgrpc.New(heap)}} {
			b.Run(fmt.Sprintf("bytes=%d/pool=%s", size, row.name), func(b *testing.B) {
				experimental.SetDefaultBufferPool(row.pool)
				call := echo(b, row.pool)
				end := suite.Footprint(b)
				b.SetParallelism(4)
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						if _, err := call(message); err != nil {
							b.Error(err)
							return
						}
					}
				})
				end()
			})
		}
	}
}
