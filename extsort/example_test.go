package extsort_test

import (
	"context"
	"fmt"
	"os"
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
