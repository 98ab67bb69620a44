// Ledger: what accounts are charged.
//
//	used of an account = what its heap has committed + reserved + used of the accounts below
//
// A charge goes up from the account whose heap takes pages. Each account on the way must have
// room for it, or nothing is charged. One mutex guards a whole tree, so no account is above its
// limit for an instant, and no charge fails because of another that fails too. A charge is
// for fresh pages, which then take a hundred times longer to fault in, so the mutex is no
// bottleneck (BenchmarkCharge).
//
// Reservations on the way pay first: what they pay for was charged above when they were made.

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
	a.ledger.mu.Lock()
	defer a.ledger.mu.Unlock()
	return a.path()
}

// charge charges n bytes to a and those above it, up to top, which it leaves out and which may
// be nil. It returns how many have come up to top. Reservations pay first, a's own only if own
// is set. On an error nothing has changed. ledger.mu is held.
func (a *Account) charge(n int64, top *Account, own bool) (up int64, err error) {
	if full, n := a.full(n, 0, top, own); full != nil {
		return 0, full.refuses(n)
	}
	for x := a; x != top; x = x.parent {
		if x != a || own {
			n -= x.draw(n)
		}
		x.used += n
		x.peak = max(x.peak, x.used)
		x.note()
	}
	return n, nil
}

// full returns the first account that has no room for such a charge and slack bytes, and how many
// it would have to have. What reservations pay needs no slack. ledger.mu is held.
func (a *Account) full(n, slack int64, top *Account, own bool) (*Account, int64) {
	for x := a; x != top; x = x.parent {
		if x != a || own {
			n -= min(n, x.reserved)
		}
		if n > 0 && n+slack > x.hardLimit()-x.used {
			return x, n + slack
		}
	}
	return nil, 0
}

// hardLimit returns the most that a may be charged: sums must not overflow where it has no
// limit. ledger.mu is held.
func (a *Account) hardLimit() int64 { return cmp.Or(a.hard, math.MaxInt64) }

// refuses returns the error of a charge that would have to have n bytes more. ledger.mu is held.
func (a *Account) refuses(n int64) error { return &FullError{a, n, a.hardLimit()} }

// refund takes n bytes off a and those above it, up to top. ledger.mu is held.
func (a *Account) refund(n int64, top *Account) {
	for x := a; x != top; x = x.parent {
		x.used -= n
		x.note()
	}
}

// move moves a charge of n bytes from one account to another of the same tree. On an error
// nothing has changed. ledger.mu is held.
func move(n int64, from, to *Account, own bool) error {
	top := from // the account that both are in, which keeps the charge
	for !to.isIn(top) {
		top = top.parent
	}
	up, err := to.charge(n, top, own)
	if err != nil {
		return err
	}
	from.refund(n, top)
	top.refund(n-up, nil) // what reservations on the way have paid
	return nil
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
	if _, err := p.a.charge(int64(bytes), nil, true); err != nil {
		return err
	}
	p.a.ledger.committed += int64(bytes)
	return nil
}

func (p payer) MayCharge(bytes, slack int) error {
	p.a.ledger.mu.Lock()
	defer p.a.ledger.mu.Unlock()
	if full, n := p.a.full(int64(bytes), int64(slack), nil, true); full != nil {
		return full.refuses(n)
	}
	return nil
}

func (p payer) Refund(bytes int) {
	p.a.ledger.mu.Lock()
	defer p.a.ledger.mu.Unlock()
	p.a.ledger.committed -= int64(bytes)
	p.a.refund(int64(bytes), nil)
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
func (p payer) MakeRoom(bytes int) bool { return p.a.makeRoom(int64(bytes), p.a) }
