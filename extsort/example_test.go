package extsort_test

import (
	"context"
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
