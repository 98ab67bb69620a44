// Payer: an account as its heap sees it. The heap charges the pages that it takes. Before a request
// is refused, the accounts that share the limit give back free pages.

package budget

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/freehold-go/freehold/budget/internal/limits"
	"github.com/freehold-go/freehold/budget/internal/pressure"
	"github.com/freehold-go/freehold/internal/heap"
	"github.com/freehold-go/freehold/internal/lockrank"
	"github.com/freehold-go/freehold/internal/pages"
)

const (
	// trimPause is the least time between two drains of the caches of accounts that share a limit.
	trimPause = 10 * time.Millisecond
	// Drains of caches, and searches that find too little, take at most 1/searchShare of the time.
	searchShare = 10
)

// FullError is the error of a request that would take an account above its hard limit. It matches
// freehold.ErrOutOfMemory. Find it with errors.As.
type FullError struct {
	Account *Account // the full one: the account that was asked, or one above
	Bytes   int64    // of the request, with the bytes that a small block must leave free
	Limit   int64    // of the full account; math.MaxInt64 if there is none
}

// Error says which account is full.
func (e *FullError) Error() string {
	return fmt.Sprintf("%v: account %q: %d bytes more would exceed the limit of %d", pages.ErrOutOfMemory, e.Account.node.Name(), e.Bytes, e.Limit)
}

// Unwrap returns freehold.ErrOutOfMemory.
func (e *FullError) Unwrap() error { return pages.ErrOutOfMemory }

// leader sets an account's limit from outside. The Budget is the leader of the process's account.
type leader interface {
	tick()                      // sets the limit by the present figures
	wake()                      // begins a tick soon, in another goroutine
	relieve(enough func() bool) // makes room until enough returns true
	OnPressure(priority int, f func(context.Context, Pressure)) (remove func())
}

// leads returns the account's leader if the leader's limit is the one that holds, or nil.
func (a *Account) leads() leader {
	if a.leader == nil || !a.node.Follows() {
		return nil
	}
	return a.leader
}

// payer implements pages.Payer.
type payer struct{ a *Account }

func (p payer) Charge(bytes int) error { return fullError(p.a.node.Charge(int64(bytes))) }
func (p payer) Refund(bytes int)       { p.a.node.Refund(int64(bytes)) }

func (p payer) MayCharge(bytes, slack int) error {
	return fullError(p.a.node.MayCharge(int64(bytes), int64(slack)))
}

// Limit returns the lowest limit of the account and the accounts above it, or 0 if there is none.
func (p payer) Limit() int { return int(min(p.a.node.Lowest(), math.MaxInt)) }

// fullError returns a refusal as an error.
func fullError(r *limits.Refusal) error {
	if r == nil {
		return nil
	}
	return &FullError{accountOf(r.Node), r.Bytes, r.Limit}
}

func accountOf(n *limits.Node) *Account { return n.Watcher().(watcher).a }

// MakeRoom runs after a charge of bytes was refused and the heap has given back its own free pages.
// It reports whether another try may help. The caller holds no lock of the heap. The steps:
//
//  1. Budget.tick, if the full account is the process's and the budget's limit holds. It may raise
//     the limit. It takes Budget.mu, and the tree's lock within.
//  2. Node.Refuse counts the refusal, and returns the full node. It takes the tree's lock. The
//     watcher wakes a round or a tick under it, and that runs in another goroutine.
//  3. Account.search, if other accounts use the full limit too: it purges their heaps, and drains
//     their caches. It holds searches.mu only to read and set its times, and no lock while it
//     purges and drains. Each heap takes its own locks.
//  4. Budget.relieve, if the limit is the budget's: it trims all heaps, ticks, collects Go's heap,
//     and ticks again. It holds relief.mu for all of this, so one goroutine does it at a time.
//
// Steps 3 and 4 end as soon as enough returns true, which takes the tree's lock.
func (p payer) MakeRoom(bytes int) bool {
	n, node := int64(bytes), p.a.node
	enough := func() bool { return node.Full(n) == nil }
	if full := node.Full(n); full != nil {
		if l := accountOf(full).leads(); l != nil {
			l.tick()
		}
	}
	began := node.Now()
	full, hasPeers := node.Refuse(n, began)
	if full == nil {
		return true
	}
	a := accountOf(full)
	searched := hasPeers && a.search(bytes, began, enough)
	if l := a.leads(); l != nil {
		l.relieve(enough)
		return true
	}
	return searched
}

// searches limits how often the accounts that share a limit are searched for free pages.
type searches struct {
	mu    lockrank.Mutex[lockrank.Leaf] // guards the fields below
	next  time.Time                     // no search before
	drain time.Time                     // no drain of their caches before
}

// search purges free pages from the heaps of a and of the accounts below, up to n bytes from each,
// until enough returns true. If that does not suffice, search drains the caches of these heaps. It
// returns false if it is too soon for a search.
func (a *Account) search(n int, began time.Time, enough func() bool) bool {
	a.searches.mu.Lock()
	due, drain := !pressure.Ahead(began, a.searches.next), !pressure.Ahead(began, a.searches.drain)
	a.searches.mu.Unlock()
	if !due {
		return false
	}
	a.each(enough, func(other *Account) { other.h.Purge(n) })
	if enough() {
		return true
	}
	searched := a.node.Now()
	if drain {
		a.trim(enough)
	}
	ended := a.node.Now()
	a.searches.mu.Lock()
	defer a.searches.mu.Unlock()
	a.searches.next = searched.Add(searchShare * searched.Sub(began))
	if drain {
		a.searches.drain = ended.Add(max(trimPause, searchShare*ended.Sub(searched)))
	}
	return true
}

// trim trims the heaps of a and of the accounts below until enough returns true.
func (a *Account) trim(enough func() bool) {
	a.each(enough, func(other *Account) { other.h.TrimSpare() })
}

// each calls f for a and the accounts below, in the order in which they were made, until enough
// returns true.
func (a *Account) each(enough func() bool, f func(*Account)) {
	eachAccount(func(other *Account) {
		if other.node.IsIn(a.node) && !enough() {
			f(other)
		}
	})
}

// eachAccount calls f for the open accounts of the process, in the order in which they were made.
func eachAccount(f func(*Account)) {
	heap.EachPayer(func(p pages.Payer) {
		if p, ok := p.(payer); ok {
			f(p.a)
		}
	})
}
