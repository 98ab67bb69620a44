package buffer_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log"
	"slices"
	"strings"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/buffer"
)

func ExampleRecords() {
	buf := buffer.New(freehold.Default(), nil)
	defer buf.Close()
	records := freehold.Must(buffer.NewRecords(buf, nil))
	for _, word := range []string{"pear", "", "fig"} {
		if err := records.AppendBytes([]byte(word)); err != nil {
			log.Fatal(err)
		}
	}
	for offset, record := range records.All() {
		fmt.Printf("%d %q\n", offset, record)
	}
	// Output:
	// 0 "pear"
	// 8 ""
	// 12 "fig"
}

func ExampleRecords_Append() {
	buf := buffer.New(freehold.Default(), nil)
	defer buf.Close()
	records := freehold.Must(buffer.NewRecords(buf, &buffer.RecordsOptions{RecordBytes: 16}))
	for i := range 3 {
		record := freehold.Must(records.Append(16))
		binary.BigEndian.PutUint64(record, uint64(i))
		binary.BigEndian.PutUint64(record[8:], uint64(i*i))
	}
	fmt.Println(binary.BigEndian.Uint64(records.At(2 * 16)[8:]))
	// Output: 4
}

func ExampleRecords_Sort() {
	buf := buffer.New(freehold.Default(), nil)
	defer buf.Close()
	records := freehold.Must(buffer.NewRecords(buf, nil))
	for _, word := range []string{"pear", "Fig", "apple"} {
		if err := records.AppendBytes([]byte(word)); err != nil {
			log.Fatal(err)
		}
	}
	fold := func(a, b []byte) int { return bytes.Compare(bytes.ToLower(a), bytes.ToLower(b)) }
	if err := records.Sort(context.Background(), fold, nil); err != nil {
		log.Fatal(err)
	}
	for _, record := range records.All() {
		fmt.Println(string(record))
	}
	// Output:
	// apple
	// Fig
	// pear
}

func ExampleRecords_SortBy() {
	buf := buffer.New(freehold.Default(), nil)
	defer buf.Close()
	records := freehold.Must(buffer.NewRecords(buf, nil))
	for _, line := range []string{"2 pear", "1 fig", "3 apple"} {
		if err := records.AppendBytes([]byte(line)); err != nil {
			log.Fatal(err)
		}
	}
	name := func(line []byte) []byte { return line[2:] }
	if err := records.SortBy(context.Background(), name, nil); err != nil {
		log.Fatal(err)
	}
	for _, record := range records.All() {
		fmt.Println(string(record))
	}
	// Output:
	// 3 apple
	// 1 fig
	// 2 pear
}

func ExampleRecords_SortByUint64() {
	buf := buffer.New(freehold.Default(), nil)
	defer buf.Close()
	records := freehold.Must(buffer.NewRecords(buf, &buffer.RecordsOptions{RecordBytes: 8}))
	for _, n := range []uint64{7, 1 << 40, 300} {
		record := freehold.Must(records.Append(8))
		binary.LittleEndian.PutUint64(record, n)
	}
	if err := records.SortByUint64(context.Background(), 0, binary.LittleEndian, nil); err != nil {
		log.Fatal(err)
	}
	for _, record := range records.All() {
		fmt.Println(binary.LittleEndian.Uint64(record))
	}
	// Output:
	// 7
	// 300
	// 1099511627776
}

// Offsets are where records begin: for those by number, and for binary search in sorted ones.
func ExampleRecords_Offsets() {
	buf := buffer.New(freehold.Default(), nil)
	defer buf.Close()
	records := freehold.Must(buffer.NewRecords(buf, nil))
	for _, word := range []string{"apple", "fig", "pear", "quince"} {
		freehold.Must(0, records.AppendBytes([]byte(word)))
	}
	offsets := freehold.Must(records.Offsets(freehold.Default()))
	defer freehold.FreeSlice(freehold.Default(), offsets)
	i, found := slices.BinarySearchFunc(offsets, "pear", func(offset int, word string) int {
		return strings.Compare(string(records.At(offset)), word)
	})
	fmt.Println(i, found, string(records.At(offsets[3])))
	for _, record := range records.Between(offsets[1], offsets[3]) {
		fmt.Println(string(record))
	}
	// Output:
	// 2 true quince
	// fig
	// pear
}

// A batch that fails half-way is taken back: End is where it began.
func ExampleRecords_Truncate() {
	buf := buffer.New(freehold.Default(), &buffer.Options{MaxBytes: 40})
	defer buf.Close()
	records := freehold.Must(buffer.NewRecords(buf, nil))
	for _, batch := range [][]string{{"apple", "fig"}, {"pear", "a record of 24 characters"}, {"quince"}} {
		begin := records.End()
		for _, word := range batch {
			if err := records.AppendBytes([]byte(word)); err != nil {
				fmt.Println("out of memory:", errors.Is(err, freehold.ErrOutOfMemory), records.Truncate(begin))
				break
			}
		}
	}
	for _, record := range records.All() {
		fmt.Println(string(record))
	}
	// Output:
	// out of memory: true <nil>
	// apple
	// fig
	// quince
}

// The records of a slice are sorted where they are. Its memory stays the caller's.
func ExampleOver() {
	words := []byte("figkeyash")
	buf := buffer.Over(freehold.Default(), words)
	defer buf.Close()
	records := freehold.Must(buffer.NewRecords(buf, &buffer.RecordsOptions{RecordBytes: 3}))
	if err := records.SortBy(context.Background(), func(word []byte) []byte { return word }, nil); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", words)
	// Output: ashfigkey
}
