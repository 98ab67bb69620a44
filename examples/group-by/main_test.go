package main

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
)

// table returns a CSV with rows of some groups.
func table(rows, groups int) string {
	var b strings.Builder
	writeTable(&b, rows, groups)
	return b.String()
}

func writeTable(w io.Writer, rows, groups int) {
	io.WriteString(w, "city,day,amount\n")
	random := rand.New(rand.NewPCG(1, 2))
	for range rows {
		fmt.Fprintf(w, "\"city, %d\",monday,%d.5\n", random.IntN(groups), random.IntN(100))
	}
}

// onGoHeap is groupBy with a Go map.
func onGoHeap(w io.Writer, r io.Reader) {
	in := csv.NewReader(r)
	in.ReuseRecord = true
	in.Read()
	totals := map[string]*total{}
	for row, err := in.Read(); err == nil; row, err = in.Read() {
		t := totals[row[0]]
		if t == nil {
			t = &total{}
			totals[strings.Clone(row[0])] = t
		}
		x, _ := strconv.ParseFloat(row[2], 64)
		t.rows++
		t.sum += x
	}
	out := csv.NewWriter(w)
	out.Write([]string{"city", "rows", "amount"})
	for _, k := range slices.Sorted(maps.Keys(totals)) {
		t := totals[k]
		out.Write([]string{k, strconv.FormatInt(t.rows, 10), strconv.FormatFloat(t.sum, 'f', -1, 64)})
	}
	out.Flush()
}

func TestGroupBy(t *testing.T) {
	in := table(20_000, 3_000)
	var got, want strings.Builder
	if err := groupBy(t.Context(), &got, strings.NewReader(in), alloctest.New(t), "city", "amount"); err != nil {
		t.Fatal(err)
	}
	if onGoHeap(&want, strings.NewReader(in)); got.String() != want.String() {
		t.Errorf("%.100q…, want %.100q…", got.String(), want.String())
	}
}

func TestErrors(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"", "the header: EOF"},
		{"a,b\n", `no column "city" in ["a" "b"]`},
		{"\ufeffcity,b\n", `no column "amount" in ["city" "b"]`},
		{"city,amount\nx,1\n\"y\nz\",two\n", `line 4: strconv.ParseFloat: parsing "two": invalid syntax`},
		{"city,amount\nx\n", "record on line 2: wrong number of fields"},
	} {
		if err := groupBy(t.Context(), io.Discard, strings.NewReader(tt.in), alloctest.New(t), "city", "amount"); err == nil || err.Error() != tt.want {
			t.Errorf("%q: %v, want %s", tt.in, err, tt.want)
		}
	}
	small := freehold.NewLimit(alloctest.New(t), 64<<10)
	if err := groupBy(t.Context(), io.Discard, strings.NewReader(table(20_000, 3_000)), small, "city", "amount"); err == nil {
		t.Error("3,000 groups fit in 64 KiB")
	}
}

// Ten million rows of five million groups. Run one memory alone to compare peaks.
func BenchmarkGroupBy(b *testing.B) {
	path := filepath.Join(b.TempDir(), "rows.csv")
	file := freehold.Must(os.Create(path))
	out := bufio.NewWriter(file)
	writeTable(out, 10_000_000, 5_000_000)
	if err := errors.Join(out.Flush(), file.Close()); err != nil {
		b.Fatal(err)
	}
	bench := func(memory string, groupBy func(in io.Reader) error) {
		b.Run("memory="+memory, func(b *testing.B) {
			for b.Loop() {
				in, err := os.Open(path)
				if err == nil {
					err = errors.Join(groupBy(in), in.Close())
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	bench("Go", func(in io.Reader) error {
		onGoHeap(io.Discard, in)
		return nil
	})
	bench("freehold", func(in io.Reader) error {
		heap := freehold.NewHeap(nil)
		defer heap.Close()
		return groupBy(b.Context(), io.Discard, in, heap, "city", "amount")
	})
}
