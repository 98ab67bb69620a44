package budget_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"runtime/debug"
	"strings"

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
	b, err := budget.Start(&budget.Options{Limit: 256 << 20}) // nil finds the container's limit
	if err != nil {
		log.Fatal(err)
	}
	defer b.Stop()
	process := b.Account()
	defer process.Close() // and all below
	b.OnPressure(0, func(_ context.Context, p budget.Pressure) {
		// Caches give back p.Wanted bytes.
	})

	search := budget.NewAccount(process, &budget.AccountOptions{Name: "search", MaxBytes: 128 << 20})
	fmt.Println(search.Name())
	_, err = process.Alloc(512<<20, 8)
	var full *budget.FullError
	fmt.Println(errors.As(err, &full), full.Account == process, full.Limit < b.Stats().Limit)
	// Output:
	// process/search
	// true true true
}

// Memory that is cheap to fill again is given back first.
func ExampleBudget_OnPressure() {
	b, err := budget.Start(&budget.Options{Limit: 8 << 30})
	if err != nil {
		log.Fatal(err)
	}
	defer b.Stop()
	process := b.Account()
	defer process.Close()
	process.SetLimits(4<<20, 0)

	called := make(chan string)
	shrink := func(cache string) func(context.Context, budget.Pressure) {
		return func(ctx context.Context, p budget.Pressure) {
			select {
			case called <- fmt.Sprint(cache, ": ", p.Level): // a cache would give back p.Wanted bytes
			case <-ctx.Done():
			}
		}
	}
	defer b.OnPressure(2, shrink("sessions"))()
	defer b.OnPressure(1, shrink("thumbnails"))()

	block, err := process.Alloc(5<<20, 8) // crosses the soft limit
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(<-called)
	fmt.Println(<-called)
	process.Free(block)
	// Output:
	// thumbnails: soft
	// sessions: soft
}

func ExampleOptions() {
	b, err := budget.Start(&budget.Options{
		Limit:    1 << 30,  // in place of the container's
		Headroom: 64 << 20, // left free
		GoHeap:   96 << 20, // what Go's heap grows to before the collector runs
	})
	if err != nil {
		log.Fatal(err)
	}
	defer b.Stop()
	figures, _, _ := strings.Cut(b.String(), ", off-heap")
	fmt.Println(figures)
	// Output: memory budget of 1GiB from Options.Limit: headroom 64MiB
}

// An exporter, or a package below main, finds the budget that main or package auto has started.
func ExampleRunning() {
	fmt.Println(budget.Running() == nil)
	b, err := budget.Start(nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(budget.Running() == b)
	b.Stop()
	fmt.Println(budget.Running() == nil)
	// Output:
	// true
	// true
	// true
}
