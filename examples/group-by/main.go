// Group-by sums a column of a CSV for each value of another column, and writes the sums in the
// order of those values. Groups and sums are off-heap.
//
//	go run ./examples/group-by -by city -sum amount <sales.csv >totals.csv
package main

import (
	"bufio"
	"context"
	"encoding/csv"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/extsort"
	"github.com/freehold-go/freehold/hashmap"
)

func main() {
	by := flag.String("by", "city", "the `column` whose values are the groups")
	sum := flag.String("sum", "amount", "the `column` to sum up")
	mib := flag.Int("mib", 1024, "limit of the groups' memory in MiB")
	flag.Parse()
	if *mib < 1 || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "group-by: -mib must be more than 0, and the CSV is read from standard input")
		os.Exit(2)
	}
	heap := freehold.NewHeap(&freehold.HeapOptions{Name: "groups", MaxBytes: *mib << 20})
	defer heap.Close()
	out := bufio.NewWriter(os.Stdout)
	err := groupBy(context.Background(), out, os.Stdin, heap, *by, *sum)
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "group-by:", err)
		os.Exit(1)
	}
}

// A total is the value of a group. It has no Go pointer, so the map keeps it off-heap.
type total struct {
	rows int64
	sum  float64
}

// groupBy reads a CSV with a header from r, and writes one with a row for each group to w.
func groupBy(ctx context.Context, w io.Writer, r io.Reader, memory freehold.Allocator, by, sum string) error {
	in := csv.NewReader(r)
	in.ReuseRecord = true
	header, err := in.Read()
	if err != nil {
		return fmt.Errorf("the header: %w", err)
	}
	header[0] = strings.TrimPrefix(header[0], "\ufeff") // a byte order mark
	byAt, sumAt := slices.Index(header, by), slices.Index(header, sum)
	if byAt < 0 {
		return fmt.Errorf("no column %q in %q", by, header)
	}
	if sumAt < 0 {
		return fmt.Errorf("no column %q in %q", sum, header)
	}
	totals := hashmap.New[string, total](memory, &hashmap.Options{Name: "groups"})
	defer totals.Close()
	for {
		row, err := in.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		x, err := strconv.ParseFloat(row[sumAt], 64)
		if err != nil {
			line, _ := in.FieldPos(sumAt)
			return fmt.Errorf("line %d: %w", line, err)
		}
		err = totals.Update(row[byAt], func(t *total, _ bool) { t.rows++; t.sum += x }) // copies a new key
		if err != nil {
			return err // the limit of memory
		}
	}
	return write(ctx, w, totals, by, sum)
}

// write writes the totals in the order of their keys. extsort sorts the keys in bounded memory, and
// goes to temporary files if they need more.
func write(ctx context.Context, w io.Writer, totals *hashmap.Map[string, total], by, sum string) error {
	out := csv.NewWriter(w)
	out.Write([]string{by, "rows", sum}) // Error has the errors of all Writes
	keys := func(yield func([]byte) bool) {
		var key []byte
		for k := range totals.Keys() {
			if key = append(key[:0], k...); !yield(key) {
				return
			}
		}
	}
	for key, err := range extsort.SortedSeq(ctx, nil, keys) {
		if err != nil {
			return err
		}
		t, _ := hashmap.GetBytes(totals, key)
		out.Write([]string{string(key), strconv.FormatInt(t.rows, 10), strconv.FormatFloat(t.sum, 'f', -1, 64)})
	}
	out.Flush()
	return out.Error()
}
