package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/arena"
)

// post sends a body to a service and returns the answer.
func post(t *testing.T, s *service, body io.Reader) (status int, answer string) {
	t.Helper()
	url, stop, err := listen(s)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Post(url, "application/octet-stream", body)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err := errors.Join(err, stop()); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, strings.TrimSpace(string(b))
}

func TestServiceRefuses(t *testing.T) {
	shared := arena.NewShared(freehold.Default(), &arena.SharedOptions{MaxBytes: 64 << 10, ChunkBytes: 4 << 10})
	defer shared.Close()
	s := &service{shared: shared}
	order := freehold.Must(encodeOrder(goHeap{}, 1, make([]line, 1000)))
	for _, test := range []struct {
		name   string
		body   io.Reader
		status int
		answer string
	}{
		{"cut", bytes.NewReader(order[:len(order)-1]), 400, "offset 0: a value of 31013 bytes, and 31012 are left"},
		{"empty", http.NoBody, 400, "offset 0: no order"},
		{"of unknown length", struct{ io.Reader }{strings.NewReader("x")}, 400, "offset 0: an order has a Content-Length of up to 1048576 bytes"},
		{"too long", bytes.NewReader(make([]byte, maxRequestBytes+1)), 400, "offset 0: an order has a Content-Length of up to 1048576 bytes"},
		{"more than the arena may hold", bytes.NewReader(order), 503, "out of memory"},
	} {
		if status, answer := post(t, s, test.body); status != test.status || !strings.Contains(answer, test.answer) {
			t.Errorf("%s: %d %q", test.name, status, answer)
		}
		shared.Reset()
	}
	small := freehold.Must(encodeOrder(goHeap{}, 2, []line{{1, 1}}))
	if status, answer := post(t, s, bytes.NewReader(small)); status != 200 {
		t.Errorf("afterwards: %d %q", status, answer)
	}
}

// Resets every 64 requests, with requests in progress, and all receipts right.
func TestRun(t *testing.T) {
	var out strings.Builder
	requests := 5000
	if testing.Short() {
		requests = 500
	}
	if err := run(context.Background(), &out, requests, 16, 30); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"handler, p99", "round trip, p99", "holds 0 blocks"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

// Rounds alternate the order of contenders, and every request is timed at the
// handler.
func TestRoundsTakeTurns(t *testing.T) {
	var order strings.Builder
	var mu sync.Mutex
	logged := func(name string) *contender {
		s := &service{}
		return newContender(name, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			order.WriteString(name)
			mu.Unlock()
			s.ServeHTTP(w, r)
		}))
	}
	a, b := logged("a"), logged("b")
	requests := 3*roundRequests + 2
	if err := compete(context.Background(), []*contender{a, b}, requests, 2, 1); err != nil {
		t.Fatal(err)
	}
	repeat, n := strings.Repeat, roundRequests
	want := repeat("a", 200) + repeat("b", 200) + repeat("a", n) + repeat("b", 2*n+1) + repeat("a", 2*n+2) + repeat("b", n+1)
	if order.String() != want {
		t.Errorf("%d requests, not by turns", order.Len())
	}
	for _, c := range []*contender{a, b} {
		if len(c.handlerP99) != 3 || len(c.tripP99) != 3 || len(c.handler.stop()) != n+1 {
			t.Errorf("%s: %d rounds, %d requests in the last", c.name, len(c.handlerP99), len(c.handler.stop()))
		}
	}
}

func TestRunEndsWhenToldTo(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	told := errors.New("told to end")
	cancel(told)
	if err := run(ctx, io.Discard, 1000, 4, 10); !errors.Is(err, told) {
		t.Errorf("error %v", err)
	}
}

func TestLoadReportsWrongAnswers(t *testing.T) {
	url, stop, err := listen(http.NotFoundHandler())
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if _, err := newClients(url, 2, 1).load(context.Background(), 10); err == nil || !strings.Contains(err.Error(), "404 Not Found") {
		t.Errorf("error %v", err)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// A request whose body stalls keeps its memory while others reset the arena, and
// only until it ends.
func TestResetLeavesRequestsAlone(t *testing.T) {
	shared := arena.NewShared(freehold.Default(), &arena.SharedOptions{ChunkBytes: 4 << 10})
	defer shared.Close()
	s := &service{shared: shared}
	send := func(id uint64, body func(order []byte) io.Reader) {
		lines := []line{{id, 1}, {id + 1, 2}}
		order := freehold.Must(encodeOrder(goHeap{}, id, lines))
		r := httptest.NewRequest(http.MethodPost, "/", body(order))
		r.ContentLength = int64(len(order))
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if err := checkReceipt(w.Body.Bytes(), id, lines); w.Code != http.StatusOK || err != nil {
			t.Errorf("request %d: status %d, %v", id, w.Code, err)
		}
	}
	send(1, func(order []byte) io.Reader {
		half := len(order) / 2
		stop := readerFunc(func([]byte) (int, error) {
			for id := range uint64(3 * resetEvery) {
				send(1000+id, func(order []byte) io.Reader { return bytes.NewReader(order) })
			}
			if shared.Stats().Retired == 0 {
				t.Error("the guard keeps nothing")
			}
			return 0, io.EOF
		})
		return io.MultiReader(bytes.NewReader(order[:half]), stop, bytes.NewReader(order[half:]))
	})
	shared.Reset()
	if kept := shared.Stats().Retired; kept != 0 {
		t.Errorf("%d bytes are kept without a guard", kept)
	}
}
