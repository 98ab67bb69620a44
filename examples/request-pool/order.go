// Orders and receipts: the messages of clients and of the service.
//
//	order   { id, line { article, count } ... }
//	receipt { id, line { article, count, price, name } ..., total }

package main

import (
	"fmt"
	"strconv"

	"github.com/freehold-go/freehold"
)

const (
	typeOrder   = Nested | 1
	typeReceipt = Nested | 2
	typeLine    = Nested | 3

	typeID      = 1
	typeArticle = 2
	typeCount   = 3
	typePrice   = 4
	typeName    = 5
	typeTotal   = 6
)

// A line of an order or receipt.
type line struct{ article, count uint64 }

// priceOf and nameOf are the service's catalogue.
func priceOf(article uint64) uint64 { return 1 + article%1000 }

func nameOf(dst []byte, article uint64) []byte {
	return strconv.AppendUint(append(dst, "article number "...), article, 10)
}

// encodeOrder returns an order, allocated from memory.
func encodeOrder(memory freehold.Allocator, id uint64, lines []line) ([]byte, error) {
	b := NewBuilder(memory)
	b.Begin(typeOrder)
	b.Uint64(typeID, id)
	for _, l := range lines {
		b.Begin(typeLine)
		b.Uint64(typeArticle, l.article)
		b.Uint64(typeCount, l.count)
		b.End()
	}
	b.End()
	return b.Message()
}

// decodeOrder returns the contents of an order, with the lines allocated from memory.
// It skips unknown types.
func decodeOrder(memory freehold.Allocator, message []byte) (id uint64, lines []line, err error) {
	d := NewDecoder(message)
	if !d.Next() || d.Type() != typeOrder {
		return 0, nil, wrong(d, "no order")
	}
	order := d.Inside()
	for order.Next() {
		switch order.Type() {
		case typeID:
			id = order.Uint64()
		case typeLine:
			l, err := decodeLine(&order)
			if err != nil {
				return 0, nil, err
			}
			if lines, err = freehold.Append(memory, lines, l); err != nil {
				return 0, nil, err
			}
		}
	}
	if err := order.Err(); err != nil {
		return 0, nil, err
	}
	if d.Next() || d.Err() != nil {
		return 0, nil, wrong(d, "more than an order")
	}
	return id, lines, nil
}

func decodeLine(order *Decoder) (l line, err error) {
	in := order.Inside()
	for in.Next() {
		switch in.Type() {
		case typeArticle:
			l.article = in.Uint64()
		case typeCount:
			l.count = in.Uint64()
		}
	}
	return l, in.Err()
}

// answer returns the receipt for an order. It allocates from memory only.
func answer(memory freehold.Allocator, order []byte) ([]byte, error) {
	id, lines, err := decodeOrder(memory, order)
	if err != nil {
		return nil, err
	}
	b := NewBuilder(memory)
	b.Begin(typeReceipt)
	b.Uint64(typeID, id)
	total := uint64(0)
	for _, l := range lines {
		price := priceOf(l.article)
		var name [40]byte
		b.Begin(typeLine)
		b.Uint64(typeArticle, l.article)
		b.Uint64(typeCount, l.count)
		b.Uint64(typePrice, price)
		b.Bytes(typeName, nameOf(name[:0], l.article))
		b.End()
		total += l.count * price
	}
	b.Uint64(typeTotal, total)
	b.End()
	return b.Message()
}

// checkReceipt returns an error if the receipt for an order is incomplete or wrong.
func checkReceipt(message []byte, id uint64, lines []line) error {
	d := NewDecoder(message)
	if !d.Next() || d.Type() != typeReceipt {
		return wrong(d, "no receipt")
	}
	n, sum, total, gotID := 0, uint64(0), uint64(0), uint64(0)
	receipt := d.Inside()
	for receipt.Next() {
		switch receipt.Type() {
		case typeID:
			gotID = receipt.Uint64()
		case typeTotal:
			total = receipt.Uint64()
		case typeLine:
			if n == len(lines) {
				return fmt.Errorf("the receipt has more than %d lines", n)
			}
			if err := checkLine(receipt.Inside(), lines[n]); err != nil {
				return fmt.Errorf("line %d: %w", n+1, err)
			}
			sum += lines[n].count * priceOf(lines[n].article)
			n++
		}
	}
	if err := receipt.Err(); err != nil {
		return err
	}
	if gotID != id || n != len(lines) || total != sum {
		return fmt.Errorf("receipt %d has %d lines and a total of %d; order %d has %d of %d", gotID, n, total, id, len(lines), sum)
	}
	return nil
}

func checkLine(in Decoder, want line) error {
	var got line
	var price uint64
	var name []byte
	for in.Next() {
		switch in.Type() {
		case typeArticle:
			got.article = in.Uint64()
		case typeCount:
			got.count = in.Uint64()
		case typePrice:
			price = in.Uint64()
		case typeName:
			name = in.Bytes()
		}
	}
	if err := in.Err(); err != nil {
		return err
	}
	var wantName [40]byte
	if got != want || price != priceOf(want.article) || string(name) != string(nameOf(wantName[:0], want.article)) {
		return fmt.Errorf("%d pieces of %q (%d) at %d", got.count, name, got.article, price)
	}
	return nil
}

// wrong returns the decoder's error, or one with the text what if there is none.
func wrong(d *Decoder, what string) error {
	if err := d.Err(); err != nil {
		return err
	}
	return &FormatError{0, what}
}
