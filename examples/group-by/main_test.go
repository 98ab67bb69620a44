package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
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
	b.WriteString("city,day,amount\n")
	random := rand.New(rand.NewPCG(1, 2))
	for range rows {
		fmt.Fprintf(&b, "\"city, %d\",monday,%d.5\n", random.IntN(groups), random.IntN(100))
	}
	return b.String()
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

func BenchmarkGroupBy(b *testing.B) {
	in := table(1_000_000, 500_000)
	b.Run("memory=Go", func(b *testing.B) {
		for b.Loop() {
			onGoHeap(io.Discard, strings.NewReader(in))
		}
	})
	b.Run("memory=freehold", func(b *testing.B) {
		heap := freehold.NewHeap(nil)
		defer heap.Close()
		for b.Loop() {
			if err := groupBy(b.Context(), io.Discard, strings.NewReader(in), heap, "city", "amount"); err != nil {
				b.Fatal(err)
			}
		}
	})
}
