package budget_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/budget"
	"github.com/freehold-go/freehold/hashmap"
)

func ExampleAccount() {
	process := budget.NewAccount(nil, &budget.AccountOptions{Name: "process", MaxBytes: 64 << 20})
	defer process.Close() // and all below
	search := budget.NewAccount(process, &budget.AccountOptions{Name: "search", MaxBytes: 16 << 20})
	tenant := budget.NewAccount(search, &budget.AccountOptions{Name: "tenant 7", MaxBytes: 8 << 20})

	index := hashmap.New[uint64, uint64](tenant, nil) // an account is an Allocator
	defer index.Close()
	if err := index.Put(1, 2); err != nil {
		log.Fatal(err)
	}

	_, err := tenant.Alloc(10<<20, 8)
	var full *budget.FullError
	fmt.Println(errors.As(err, &full), errors.Is(err, freehold.ErrOutOfMemory), full.Account.Name())
	fmt.Println(process.Stats().Used == tenant.Stats().Used)
	// Output:
	// true true process/search/tenant 7
	// true
}

func ExampleAccount_AllocOrEvict() {
	cache := budget.NewAccount(nil, &budget.AccountOptions{Name: "cache", MaxBytes: 4 << 20})
	defer cache.Close()

	var values [][]byte // the oldest first
	evict := func(bytes int) (freed int) {
		for len(values) > 0 && freed < bytes {
			freed += len(values[0])
			cache.Free(values[0])
			values = values[1:]
		}
		return freed
	}
	for range 10000 {
		v, err := cache.AllocOrEvict(1000, 8, evict)
		if err != nil {
			log.Fatal(err)
		}
		values = append(values, v)
	}
	fmt.Println("within the limit:", cache.Stats().Peak <= 4<<20)
	fmt.Println("well filled:", len(values) > 3500)
	// Output:
	// within the limit: true
	// well filled: true
}

func ExampleAccount_OnPressure() {
	tenant := budget.NewAccount(nil, &budget.AccountOptions{Name: "tenant", MaxBytes: 8 << 20, Soft: 4 << 20})
	defer tenant.Close()
	told := make(chan budget.Level)
	remove := tenant.OnPressure(0, func(_ context.Context, p budget.Pressure) {
		told <- p.Level // a cache would give back p.Wanted bytes
	})
	defer remove()

	b, err := tenant.Alloc(5<<20, 8) // crosses the soft limit
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(<-told)
	tenant.Free(b)
	tenant.Trim()
	fmt.Println(<-told)
	// Output:
	// soft
	// calm
}

// A tenant's limits change while it is used. What it has stays.
func ExampleAccount_SetLimits() {
	tenant := budget.NewAccount(nil, &budget.AccountOptions{Name: "tenant", MaxBytes: 16 << 20})
	defer tenant.Close()
	block := freehold.Must(tenant.Alloc(8<<20, 8))
	tenant.SetLimits(0, 4<<20)

	_, err := tenant.Alloc(1<<20, 8)
	st := tenant.Stats()
	fmt.Println(errors.Is(err, freehold.ErrOutOfMemory), st.Pressure.Level, st.Used > st.MaxBytes, st.Room)
	tenant.Free(block)
	_, err = tenant.Alloc(1<<20, 8)
	fmt.Println(err)
	// Output:
	// true hard true 0
	// <nil>
}

func ExampleAllAccounts() {
	a := budget.NewAccount(nil, &budget.AccountOptions{Name: "ingest", MaxBytes: 1 << 20})
	defer a.Close()
	for _, st := range budget.AllAccounts() {
		if st.Name == "ingest" {
			fmt.Println(st.MaxBytes, st.Used, st.Pressure.Level)
		}
	}
	// Output: 1048576 0 calm
}
