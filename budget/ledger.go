// Ledger: what accounts are charged.
//
//	used of an account = what its heap has committed + used of the accounts below
//
// A charge goes up from the account whose heap takes pages. Each account on the way must have
// room for it, or nothing is charged. One mutex guards a whole tree, so no account is above its
// limit for an instant, and no charge fails because of another that fails too. A charge is
// for fresh pages, which then take a hundred times longer to fault in, so the mutex is no
// bottleneck (BenchmarkCharge).

package budget

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/freehold-go/freehold/internal/lockrank"
	"github.com/freehold-go/freehold/internal/pages"
)

// ledger is what the accounts of a tree share. Under mu no lock is taken but leaves.
type ledger struct {
	mu        lockrank.Mutex[lockrank.Ledger]
	now       func() time.Time
	committed int64 // by the heaps of all; mu is held
}

// FullError is the error of a request that would take an account above its hard limit. It matches
// freehold.ErrOutOfMemory. Find it with errors.As.
type FullError struct {
	Account *Account // that is full: the one that was asked, or one above
	Bytes   int64    // that it had to have more; of a small block, with what it leaves free: see Account
	Limit   int64    // its hard limit; math.MaxInt64 if there is none
}

// Error says which account is full.
func (e *FullError) Error() string {
	return fmt.Sprintf("%v: account %q: %d bytes more would exceed the limit of %d", pages.ErrOutOfMemory, e.Account.Name(), e.Bytes, e.Limit)
}

// Unwrap returns freehold.ErrOutOfMemory.
func (e *FullError) Unwrap() error { return pages.ErrOutOfMemory }

// Name returns the account's name behind those above: process/search/tenant.
func (a *Account) Name() string {
	a.mustBeMade("Account.Name")
	return a.name
}

// charge charges n bytes to a and the accounts above it. On an error nothing is charged. ledger.mu
// is held.
func (a *Account) charge(n int64) error {
	if full := a.full(n, 0); full != nil {
		return full.refuses(n)
	}
	for x := a; x != nil; x = x.parent {
		x.used += n
		x.peak = max(x.peak, x.used)
		x.note()
	}
	return nil
}

// full returns the first account on the way up that has no room for n bytes and slack, or nil.
// ledger.mu is held.
func (a *Account) full(n, slack int64) *Account {
	for x := a; x != nil; x = x.parent {
		if n > 0 && n+slack > x.hardLimit()-x.used {
			return x
		}
	}
	return nil
}

// hardLimit returns the most that a may be charged: sums must not overflow where it has no
// limit. ledger.mu is held.
func (a *Account) hardLimit() int64 { return cmp.Or(a.hard, math.MaxInt64) }

// refuses returns the error of a charge of n bytes. ledger.mu is held.
func (a *Account) refuses(n int64) error { return &FullError{a, n, a.hardLimit()} }

// refund takes n bytes off a and the accounts above it. ledger.mu is held.
func (a *Account) refund(n int64) {
	for x := a; x != nil; x = x.parent {
		x.used -= n
		x.note()
	}
}

// payer is an account as its heap sees it.
type payer struct{ a *Account }

func accountOf(p pages.Payer) (*Account, bool) {
	of, ok := p.(payer)
	return of.a, ok
}

func (p payer) Charge(bytes int) error {
	p.a.ledger.mu.Lock()
	defer p.a.ledger.mu.Unlock()
	if err := p.a.charge(int64(bytes)); err != nil {
		return err
	}
	p.a.ledger.committed += int64(bytes)
	return nil
}

func (p payer) MayCharge(bytes, slack int) error {
	p.a.ledger.mu.Lock()
	defer p.a.ledger.mu.Unlock()
	if full := p.a.full(int64(bytes), int64(slack)); full != nil {
		return full.refuses(int64(bytes) + int64(slack))
	}
	return nil
}

func (p payer) Refund(bytes int) {
	p.a.ledger.mu.Lock()
	defer p.a.ledger.mu.Unlock()
	p.a.ledger.committed -= int64(bytes)
	p.a.refund(int64(bytes))
}

// Limit returns the lowest limit of a and of those above.
func (p payer) Limit() int {
	p.a.ledger.mu.Lock()
	defer p.a.ledger.mu.Unlock()
	least := int64(0)
	for x := p.a; x != nil; x = x.parent {
		least = lower(least, x.hard)
	}
	return int(min(least, math.MaxInt))
}

// MakeRoom has those who share the limit of the full account give back what they do not use.
func (p payer) MakeRoom(bytes int) bool { return p.a.makeRoom(int64(bytes)) }
