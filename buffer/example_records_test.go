package buffer_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"log"

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
