package extsort_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/freehold-go/freehold/extsort"
)

func ExampleSort() {
	o := &extsort.Options{MemoryBytes: 64 << 20, Unique: true}
	if err := extsort.Sort(context.Background(), os.Stdout, o, strings.NewReader("pear\napple\npear\n")); err != nil {
		panic(err)
	}
	// Output:
	// apple
	// pear
}

func ExampleSorted() {
	// By the word after the first blank.
	second := func(_, line []byte) []byte {
		_, word, _ := strings.Cut(string(line), " ")
		return []byte(word)
	}
	for line, err := range extsort.Sorted(context.Background(), &extsort.Options{Key: second}, strings.NewReader("1 pear\n2 apple\n")) {
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s\n", line)
	}
	// Output:
	// 2 apple
	// 1 pear
}

// The result may replace its source: until it is complete, the old file is there.
func ExampleSortFile() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	words := filepath.Join(dir, "words")
	if err := os.WriteFile(words, []byte("pear\napple\n"), 0o666); err != nil {
		panic(err)
	}

	o := &extsort.Options{MemoryBytes: 64 << 20, Reverse: true}
	if err := extsort.SortFile(context.Background(), words, o, words); err != nil {
		panic(err)
	}
	sorted, err := os.ReadFile(words)
	fmt.Printf("%s%v\n", sorted, err)
	// Output:
	// pear
	// apple
	// <nil>
}

// Records from a program rather than from a file, of any bytes.
func ExampleSortedSeq() {
	names := func(yield func([]byte) bool) {
		for i := range 4 {
			if !yield(fmt.Appendf(nil, "user-%d\n", 3*i%4)) {
				return
			}
		}
	}
	for name, err := range extsort.SortedSeq(context.Background(), nil, names) {
		if err != nil {
			panic(err)
		}
		fmt.Printf("%q\n", name)
	}
	// Output:
	// "user-0\n"
	// "user-1\n"
	// "user-2\n"
	// "user-3\n"
}

// Each source is sorted already. Of equal lines those of the first source come first.
func ExampleMerge() {
	monday, tuesday := strings.NewReader("1 login\n4 logout\n"), strings.NewReader("2 login\n4 failed\n")
	hour := func(_, line []byte) []byte { return line[:1] }
	if err := extsort.Merge(context.Background(), os.Stdout, &extsort.Options{Key: hour}, monday, tuesday); err != nil {
		panic(err)
	}
	// Output:
	// 1 login
	// 2 login
	// 4 logout
	// 4 failed
}

// The error says which record is not in order.
func ExampleCheck() {
	err := extsort.Check(context.Background(), nil, strings.NewReader("apple\npear\nfig\n"))
	var wrong *extsort.DisorderError
	if errors.As(err, &wrong) {
		fmt.Printf("record %d: %s\n", wrong.Number, wrong.Record)
	}
	// Output: record 3: fig
}

// One field descends and another ascends: the first has its bits inverted in the key.
// Options.Reverse is for a key that descends as a whole.
func ExampleOptions_key() {
	const city, population = 4, 4
	key := func(dst, record []byte) []byte {
		n := binary.BigEndian.Uint32(record[city:])
		return append(binary.BigEndian.AppendUint32(dst, ^n), record[:city]...)
	}
	o := &extsort.Options{Format: extsort.Fixed(city + population), Key: key}
	var cities []byte
	for _, c := range []struct {
		name string
		n    uint32
	}{{"Bari", 300_000}, {"Oslo", 700_000}, {"Bonn", 300_000}} {
		cities = binary.BigEndian.AppendUint32(append(cities, c.name...), c.n)
	}
	for record, err := range extsort.Sorted(context.Background(), o, bytes.NewReader(cities)) {
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s %d\n", record[:city], binary.BigEndian.Uint32(record[city:]))
	}
	// Output:
	// Oslo 700000
	// Bari 300000
	// Bonn 300000
}

// A long sort shows how far it is, and ends early when its context does.
func ExampleOptions_progress() {
	ctx, cancel := context.WithCancelCause(context.Background())
	o := &extsort.Options{Progress: func(p extsort.Progress) {
		if p.Phase == extsort.PhaseWriting {
			fmt.Printf("%s: %d of %d bytes\n", p.Phase, p.Done, p.Total)
			cancel(errors.New("the user has seen enough"))
		}
	}}
	err := extsort.Sort(ctx, os.Stdout, o, strings.NewReader("pear\napple\n"))
	fmt.Println(err)
	// Output:
	// writing: 0 of 11 bytes
	// the user has seen enough
}
