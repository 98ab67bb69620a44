package guides

import (
	"fmt"
	"unique"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/intern"
)

func Example_uniqueBefore() {
	type visit struct {
		city unique.Handle[string] // 8 bytes, which the collector visits
		day  int32
	}
	var visits []visit
	for day, city := range []string{"Oslo", "Lima", "Oslo"} {
		visits = append(visits, visit{unique.Make(city), int32(day)})
	}
	fmt.Println(visits[0].city == visits[2].city, visits[1].city.Value())
	// Output: true Lima
}

func Example_uniqueAfter() {
	cities := intern.NewShared(freehold.Default(), nil) // for any goroutine, as unique is
	defer cities.Close()

	type visit struct {
		city intern.ID // 4 bytes, a number
		day  int32
	}
	var visits []visit
	for day, city := range []string{"Oslo", "Lima", "Oslo"} {
		id, err := cities.Intern(city)
		if err != nil {
			panic(err)
		}
		visits = append(visits, visit{id, int32(day)})
	}
	fmt.Println(visits[0].city == visits[2].city, cities.Value(visits[1].city))
	// Output: true Lima
}
