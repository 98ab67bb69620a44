package intern_test

import (
	"fmt"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/intern"
)

// A column of strings is a column of numbers and a set of strings.
func Example() {
	cities := intern.New(freehold.Default(), nil)
	defer cities.Close()

	var column []intern.ID
	for _, city := range []string{"Oslo", "Lima", "Oslo", "Oslo", "Kyiv", "Lima"} {
		id, err := cities.Intern(city)
		if err != nil {
			fmt.Println(err)
			return
		}
		column = append(column, id)
	}
	fmt.Println(column)

	count := make([]int, cities.Len()) // IDs are dense
	for _, id := range column {
		count[id]++
	}
	for id, city := range cities.All() {
		fmt.Println(city, count[id])
	}
	// Output:
	// [0 1 0 0 2 1]
	// Oslo 3
	// Lima 2
	// Kyiv 1
}

func ExampleStrings_Release() {
	topics := intern.New(freehold.Default(), &intern.Options{RefCounts: true})
	defer topics.Close()

	a, _ := topics.Intern("news")
	b, _ := topics.Intern("news") // the same string, and a second reference
	fmt.Println(a == b, topics.Release(a), topics.Release(b), topics.Len())
	// Output: true false true 0
}

func ExampleStrings_Lookup() {
	names := intern.New(freehold.Default(), nil)
	defer names.Close()

	names.Intern("x")
	id, ok := names.Lookup("x")
	fmt.Println(id, ok)
	_, ok = names.LookupBytes([]byte("y"))
	fmt.Println(ok)
	// Output:
	// 0 true
	// false
}

// A string in an off-heap value: 16 bytes that the collector does not see, or 4.
func ExampleStrings_Value() {
	type person struct {
		name freehold.String
		city intern.ID
	}
	names := intern.New(freehold.Default(), nil)
	defer names.Close()

	p, err := freehold.New[person](freehold.Default())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer freehold.Free(freehold.Default(), p)
	p.city, _ = names.Intern("Lima")
	p.name = freehold.StringOf(names.Value(p.city))
	fmt.Println(p.name.Get(), p.city)
	// Output: Lima 0
}

func ExampleShared() {
	labels := intern.NewShared(freehold.Default(), nil)
	defer labels.Close()

	ids := make(chan intern.ID)
	for range 2 {
		go func() {
			id, _ := labels.Intern("host")
			ids <- id
		}()
	}
	a, b := <-ids, <-ids
	fmt.Println(a == b, labels.Value(a))
	// Output: true host
}

// Words of a buffer are interned without a string for each. A word that is used twice has two
// references.
func ExampleStrings_Retain() {
	words := intern.New(freehold.Default(), &intern.Options{RefCounts: true})
	defer words.Close()

	id, err := words.InternBytes([]byte("oslo"))
	if err != nil {
		fmt.Println(err)
		return
	}
	words.Retain(id)
	fmt.Println(words.Release(id), words.Len())
	fmt.Println(words.Release(id), words.Len())
	// Output:
	// false 1
	// true 0
}

// What the strings take, and what interning saves.
func ExampleStrings_Stats() {
	words := intern.New(freehold.Default(), nil)
	defer words.Close()

	read := 0
	for i := range 10_000 {
		word := fmt.Sprintf("country-%d", i%10)
		read += len(word)
		if _, err := words.Intern(word); err != nil {
			fmt.Println(err)
			return
		}
	}
	st := words.Stats()
	fmt.Println(st.Len, "strings of", st.LiveBytes, "bytes, of", read, "that were read")
	// Output: 10 strings of 90 bytes, of 90000 that were read
}
