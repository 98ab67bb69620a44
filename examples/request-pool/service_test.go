package main

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/arena"
	"github.com/freehold-go/freehold/internal/asan"
)

// serve sends an order to a service and returns the answer.
func serve(s *service, order io.Reader, length int64) (status int, answer string) {
	r := httptest.NewRequest(http.MethodPost, "/", order)
	r.ContentLength = length
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func TestAnswers(t *testing.T) {
	shared := arena.NewShared(alloctest.New(t), &arena.SharedOptions{MaxBytes: 64 << 10, ChunkBytes: 4 << 10})
	defer shared.Close()
	s := &service{shared: shared}
	for _, test := range []struct {
		order  string
		more   int64 // added to the Content-Length
		status int
		want   string
	}{
		{"", 0, 200, "total 0\n"},
		{"1234 2\n999 1", 0, 200, "2 of article 1234 at 235\n1 of article 999 at 1000\ntotal 1470\n"},
		{"1 2\n3\n", 0, 400, `malformed order: line 2 is "3\n"`},
		{"1 2 3\n", 0, 400, `line 1 is "1 2 3\n"`},
		{"1 18446744073709551616\n", 0, 400, `line 1 is "1 18446744073709551616\n"`},
		{"1 2\n", 1, 400, "malformed order: unexpected EOF"},
		{"1 2\n", -5, 400, "malformed order: its Content-Length must be 0 to 1048576"}, // unknown
		{"1 2\n", 1 << 20, 400, "malformed order: its Content-Length must be 0 to 1048576"},
		{strings.Repeat("1 2\n", 10_000), 0, 503, "out of memory"},
		{"1 2\n", 0, 200, "2 of article 1 at 2\ntotal 4\n"},
	} {
		status, answer := serve(s, strings.NewReader(test.order), int64(len(test.order))+test.more)
		if status != test.status || !strings.Contains(answer, test.want) {
			t.Errorf("%.20q: status %d, %q", test.order, status, answer)
		}
		shared.Reset()
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// A request with a stalled body keeps its memory while others reset the arena. The memory is
// reused once the request ends.
func TestResetLeavesRequestsAlone(t *testing.T) {
	shared := arena.NewShared(alloctest.New(t), &arena.SharedOptions{ChunkBytes: 4 << 10})
	defer shared.Close()
	s := &service{shared: shared}
	stall := readerFunc(func([]byte) (int, error) {
		for range 3 * resetEvery {
			serve(s, strings.NewReader("9 9\n"), 4)
		}
		if shared.Stats().Retired == 0 {
			t.Error("the guard keeps nothing")
		}
		return 0, io.EOF
	})
	order := io.MultiReader(strings.NewReader("7 "), stall, strings.NewReader("3\n"))
	if status, answer := serve(s, order, 4); status != 200 || answer != "3 of article 7 at 8\ntotal 24\n" {
		t.Errorf("status %d, %q", status, answer)
	}
	shared.Reset()
	if kept := shared.Stats().Retired; kept != 0 {
		t.Errorf("%d bytes are kept without a guard", kept)
	}
}

// answer is the work of a request without HTTP.
func answer(memory freehold.Allocator, order []byte) error {
	lines, err := parse(memory, order)
	if err == nil {
		_, err = receiptOf(memory, lines)
	}
	return err
}

var hundred = bytes.Repeat([]byte("123456789 5\n"), 100)

func TestOutOfMemory(t *testing.T) {
	for n := 0; ; n++ {
		a := arena.New(alloctest.FailAfter(alloctest.New(t), n), &arena.Options{ChunkBytes: 128, MaxChunkBytes: 128})
		err := answer(a, hundred)
		a.Close()
		if err == nil {
			if n < 5 {
				t.Errorf("only %d allocations", n)
			}
			break
		}
		if !errors.Is(err, freehold.ErrOutOfMemory) {
			t.Fatalf("failure %d: %v", n, err)
		}
	}
}

func TestNoGoAllocations(t *testing.T) {
	if asan.Enabled {
		t.Skip("instrumented code allocates, and so do checked blocks")
	}
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	a := arena.New(heap, nil)
	defer a.Close()
	if n := testing.AllocsPerRun(100, func() {
		if err := answer(a, hundred); err != nil {
			t.Fatal(err)
		}
		a.Reset()
	}); n != 0 {
		t.Errorf("an answer makes %v allocations on the Go heap", n)
	}
}

// The arena is reset every 64 requests, with requests in progress, and all receipts are right.
func TestRun(t *testing.T) {
	var out strings.Builder
	if err := run(&out, 500); err != nil || !strings.Contains(out.String(), "holds 0 blocks") {
		t.Errorf("error %v, printed\n%s", err, out.String())
	}
}

// goHeap is the Go heap as an allocator: the collector frees.
type goHeap struct{}

func (goHeap) Alloc(size, align int) ([]byte, error)  { return make([]byte, size), nil }
func (goHeap) Zeroed(size, align int) ([]byte, error) { return make([]byte, size), nil }
func (goHeap) Resize([]byte, int) ([]byte, bool)      { return nil, false }
func (goHeap) Free([]byte)                            {}

func BenchmarkAnswer(b *testing.B) {
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	shared := arena.NewShared(heap, nil)
	defer shared.Close()
	for name, memory := range map[string]freehold.Allocator{"go": goHeap{}, "shared": shared} {
		b.Run("memory="+name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for n := 1; pb.Next(); n++ {
					g := shared.Enter()
					err := answer(memory, hundred)
					g.Leave()
					if err != nil {
						b.Fatal(err)
					}
					if n%resetEvery == 0 {
						shared.Reset()
					}
				}
			})
		})
	}
}
