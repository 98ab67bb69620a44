// Service: answers orders over HTTP, with the memory of all requests in one arena.
//
//	request 1   Enter --- alloc --- alloc --- write --- Leave
//	request 2         Enter --- alloc --- write --- Leave
//	request 3              Enter --- alloc ----- | ------ write --- Leave
//	                                             |
//	                                           Reset
//
// Reset frees the blocks of all requests, even those in progress. The blocks of a
// request stay valid as long as it holds its guard.

package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/arena"
)

const (
	resetEvery      = 64      // requests
	maxRequestBytes = 1 << 20 // of an order
)

// service is the handler of orders.
type service struct {
	shared *arena.Shared // nil: requests use the Go heap
	served atomic.Uint64
}

// ServeHTTP answers an order with its receipt.
func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.shared == nil {
		serve(goHeap{}, w, r)
		return
	}
	g := s.shared.Enter()
	defer g.Leave()
	serve(s.shared, w, r)
	if s.served.Add(1)%resetEvery == 0 {
		s.shared.Reset()
	}
}

// serve answers a request. It does not use memory's blocks after it returns.
func serve(memory freehold.Allocator, w http.ResponseWriter, r *http.Request) {
	receipt, err := receiptFor(memory, r)
	var malformed *FormatError
	switch {
	case err == nil:
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = w.Write(receipt) // ignore clients that have disconnected
	case errors.As(err, &malformed):
		http.Error(w, err.Error(), http.StatusBadRequest)
	case errors.Is(err, freehold.ErrOutOfMemory):
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	default:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

func receiptFor(memory freehold.Allocator, r *http.Request) ([]byte, error) {
	if r.ContentLength < 0 || r.ContentLength > maxRequestBytes {
		return nil, &FormatError{0, fmt.Sprintf("an order has a Content-Length of up to %d bytes", maxRequestBytes)}
	}
	order, err := memory.Alloc(int(r.ContentLength), 1)
	if err != nil {
		return nil, err
	}
	if _, err := io.ReadFull(r.Body, order); err != nil {
		return nil, &FormatError{0, "the order is cut off: " + err.Error()}
	}
	return answer(memory, order)
}

// goHeap is the Go heap as an allocator, for comparison: the collector frees.
type goHeap struct{}

func (goHeap) Alloc(size, align int) ([]byte, error)  { return make([]byte, size), nil }
func (goHeap) Zeroed(size, align int) ([]byte, error) { return make([]byte, size), nil }
func (goHeap) Resize([]byte, int) ([]byte, bool)      { return nil, false }
func (goHeap) Free([]byte)                            {}
