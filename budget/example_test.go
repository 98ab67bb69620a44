package budget_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"runtime/debug"

	"github.com/freehold-go/freehold/budget"
)

func ExampleStart() {
	before := debug.SetMemoryLimit(-1)

	b, err := budget.Start(&budget.Options{Limit: 8 << 30}) // nil finds the container's limit
	if err != nil {
		log.Fatal(err)
	}
	st := b.Stats()
	fmt.Println("Go gets less than all:", st.GoLimit < st.Limit)

	b.Stop()
	fmt.Println("restored:", debug.SetMemoryLimit(-1) == before)
	// Output:
	// Go gets less than all: true
	// restored: true
}

func ExampleBudget_Account() {
	b, err := budget.Start(&budget.Options{Limit: 1 << 30}) // nil finds the container's limit
	if err != nil {
		log.Fatal(err)
	}
	defer b.Stop()
	process := b.Account()
	defer process.Close() // and all below
	b.OnPressure(0, func(_ context.Context, p budget.Pressure) {
		// Caches give back p.Wanted bytes.
	})

	search := budget.NewAccount(process, &budget.AccountOptions{Name: "search", MaxBytes: 512 << 20})
	fmt.Println(search.Name())
	_, err = process.Reserve(2 << 30)
	var full *budget.FullError
	fmt.Println(errors.As(err, &full), full.Account == process, full.Limit < b.Stats().Limit)
	// Output:
	// process/search
	// true true true
}
