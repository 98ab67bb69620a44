package misuse

import (
	"context"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/budget"
)

// starts runs a program that starts a budget.
func starts(o budget.Options) func(w *world) {
	return func(w *world) {
		b, err := budget.Start(&o)
		if w.err = err; err == nil {
			b.Stop()
		}
	}
}

const budgetLimit = 1 << 40

// inAccount runs a program with an account.
func inAccount(f func(w *world, a *budget.Account)) func(w *world) {
	return func(w *world) {
		a := budget.NewAccount(nil, &budget.AccountOptions{Name: "guilty"})
		defer a.Close()
		f(w, a)
	}
}

var budgetPrograms = []program{
	{"a budget with a negative limit", always(panics("Options.Limit -1")), starts(budget.Options{Limit: -1}), starts(budget.Options{Limit: budgetLimit})},
	{"a budget with a negative headroom", always(panics("Options.Headroom -1")),
		starts(budget.Options{Limit: budgetLimit, Headroom: -1}), starts(budget.Options{Limit: budgetLimit, Headroom: 1 << 30})},
	{"two budgets at once", always(fails("a budget runs already")),
		func(w *world) {
			b := freehold.Must(budget.Start(&budget.Options{Limit: budgetLimit}))
			defer b.Stop()
			_, w.err = budget.Start(&budget.Options{Limit: budgetLimit})
		},
		func(w *world) {
			for range 2 {
				freehold.Must(budget.Start(&budget.Options{Limit: budgetLimit})).Stop()
			}
		}},
	{"OnPressure of nil", always(panics("f is nil")),
		func(w *world) {
			b := freehold.Must(budget.Start(&budget.Options{Limit: budgetLimit}))
			defer b.Stop()
			b.OnPressure(0, nil)
		},
		func(w *world) {
			b := freehold.Must(budget.Start(&budget.Options{Limit: budgetLimit}))
			defer b.Stop()
			b.OnPressure(0, func(context.Context, budget.Pressure) {})()
		}},
	{"an Account that NewAccount did not make", always(panics("budget.NewAccount makes an Account")),
		func(w *world) { new(budget.Account).Trim() }, inAccount(func(*world, *budget.Account) {})},
	{"use of an Account after Close", always(panics("is closed")),
		inAccount(func(w *world, a *budget.Account) { a.Close(); a.Trim() }),
		inAccount(func(w *world, a *budget.Account) { a.Close() })},
	{"an Account with a negative limit", always(panics("want 0 or more")),
		func(w *world) { budget.NewAccount(nil, &budget.AccountOptions{MaxBytes: -1}) }, inAccount(func(*world, *budget.Account) {})},
}
