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
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/arena"
)

const (
	resetEvery      = 64      // requests
	maxRequestBytes = 1 << 20 // of an order
)

var errMalformed = errors.New("malformed order")

// service answers an order with a receipt. Each line of an order has the number of an article
// and a count.
type service struct {
	shared *arena.Shared
	served atomic.Uint64
}

// ServeHTTP does not use the arena's blocks after its guard has left.
func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g := s.shared.Enter()
	defer g.Leave()
	receipt, err := receiptFor(s.shared, r)
	switch {
	case err == nil:
		_, _ = w.Write(receipt) // ignore clients that have disconnected
	case errors.Is(err, errMalformed):
		http.Error(w, err.Error(), http.StatusBadRequest)
	case errors.Is(err, freehold.ErrOutOfMemory):
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	default:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
	if s.served.Add(1)%resetEvery == 0 {
		s.shared.Reset()
	}
}

// receiptFor reads an order and returns its receipt, both in memory.
func receiptFor(memory freehold.Allocator, r *http.Request) ([]byte, error) {
	if r.ContentLength < 0 || r.ContentLength > maxRequestBytes {
		return nil, fmt.Errorf("%w: its Content-Length must be 0 to %d", errMalformed, maxRequestBytes)
	}
	order, err := memory.Alloc(int(r.ContentLength), 1)
	if err != nil {
		return nil, err
	}
	if _, err := io.ReadFull(r.Body, order); err != nil {
		return nil, fmt.Errorf("%w: %w", errMalformed, err)
	}
	lines, err := parse(memory, order)
	if err != nil {
		return nil, err
	}
	return receiptOf(memory, lines)
}

// A line is one line of an order.
type line struct{ article, count uint64 }

// priceOf is the service's catalogue.
func priceOf(article uint64) uint64 { return 1 + article%1000 }

// parse returns the lines of an order, allocated from memory.
func parse(memory freehold.Allocator, order []byte) (lines []line, err error) {
	for text := range bytes.Lines(order) {
		article, count, _ := bytes.Cut(bytes.TrimSuffix(text, []byte("\n")), []byte(" "))
		a, err1 := strconv.ParseUint(string(article), 10, 64)
		c, err2 := strconv.ParseUint(string(count), 10, 64)
		if err1 != nil || err2 != nil {
			return nil, fmt.Errorf("%w: line %d is %q", errMalformed, len(lines)+1, text)
		}
		if lines, err = freehold.Append(memory, lines, line{a, c}); err != nil {
			return nil, err
		}
	}
	return lines, nil
}

// receiptOf returns the receipt of an order, allocated from memory.
func receiptOf(memory freehold.Allocator, lines []line) (receipt []byte, err error) {
	total := uint64(0)
	for _, l := range lines {
		price := priceOf(l.article)
		total += l.count * price
		var buf [100]byte // long enough for three numbers
		text := strconv.AppendUint(buf[:0], l.count, 10)
		text = strconv.AppendUint(append(text, " of article "...), l.article, 10)
		text = strconv.AppendUint(append(text, " at "...), price, 10)
		if receipt, err = freehold.Append(memory, receipt, append(text, '\n')...); err != nil {
			return nil, err
		}
	}
	var buf [30]byte
	text := strconv.AppendUint(append(buf[:0], "total "...), total, 10)
	return freehold.Append(memory, receipt, append(text, '\n')...)
}
