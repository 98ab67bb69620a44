// Reserve: memory that is charged ahead of use.

package budget

import (
	"slices"

	"github.com/freehold-go/freehold/internal/arg"
)

// Reservation is memory that an account may take whatever others do: its part of all limits
// above is charged already. It is safe for concurrent use.
//
// It belongs to the account: whatever it or an account below takes comes out of its oldest
// reservation first. A task that must not share one gets an account of its own below.
// What counts is committed memory, so blocks take a little more than their sizes. A reservation
// takes no memory: the system may still have none.
type Reservation struct {
	ledger *ledger

	// ledger.mu guards the rest.
	account *Account
	left    int64
}

// Reserve charges bytes to the account and those above it, ahead of use. It fails with a
// [FullError], after free pages were given back, if one of them is full. The caller calls
// Release in the end. It panics for negative bytes, and after Close.
func (a *Account) Reserve(bytes int64) (*Reservation, error) {
	const call = "Account.Reserve"
	a.mustBeMade(call)
	if bytes < 0 {
		arg.Panicf(call, "bytes %d, want 0 or more", bytes)
	}
	r, err := a.tryReserve(call, bytes)
	if err != nil && a.makeRoom(bytes, nil) {
		r, err = a.tryReserve(call, bytes)
	}
	return r, err
}

func (a *Account) tryReserve(call string, bytes int64) (*Reservation, error) {
	a.ledger.mu.Lock()
	defer a.ledger.mu.Unlock()
	a.mustBeOpen(call)
	if _, err := a.charge(bytes, nil, false); err != nil {
		return nil, err
	}
	r := &Reservation{ledger: a.ledger, account: a, left: bytes}
	a.add(r)
	return r, nil
}

// Left returns the bytes that are not used yet.
func (r *Reservation) Left() int64 {
	r.ledger.mu.Lock()
	defer r.ledger.mu.Unlock()
	return r.left
}

// Release gives back what is left. What was taken stays the account's until it is freed. It may
// be called twice, and after Close of the account.
func (r *Reservation) Release() {
	r.ledger.mu.Lock()
	defer r.ledger.mu.Unlock()
	r.release()
}

// Transfer makes what is left a reservation of another account of the same tree. An account that
// is above both is charged as before. If to or another above it has no room, the error is a
// [FullError], and nothing has changed. [Account.MoveTo] moves blocks, with their account. It panics if to is in another tree, or closed.
func (r *Reservation) Transfer(to *Account) error {
	const call = "Reservation.Transfer"
	r.ledger.mustHave(call, to)
	r.ledger.mu.Lock()
	defer r.ledger.mu.Unlock()
	to.mustBeOpen(call)
	if err := move(r.left, r.account, to, false); err != nil {
		return err
	}
	r.account.drop(r)
	r.account = to
	to.add(r)
	return nil
}

// release is Release. ledger.mu is held.
func (r *Reservation) release() {
	r.account.drop(r)
	r.account.refund(r.left, nil)
	r.left = 0
}

// add adds r to the reservations of a, whose charge it has. ledger.mu is held.
func (a *Account) add(r *Reservation) {
	a.reservations = append(a.reservations, r)
	a.reserved += r.left
}

// drop undoes add. ledger.mu is held.
func (a *Account) drop(r *Reservation) {
	a.reservations = slices.DeleteFunc(a.reservations, func(other *Reservation) bool { return other == r })
	a.reserved -= r.left
}

// draw takes up to n bytes out of the reservations of a, the oldest first. ledger.mu is held.
func (a *Account) draw(n int64) (drawn int64) {
	n = min(n, a.reserved)
	a.reserved -= n
	for drawn < n {
		r := a.reservations[0]
		d := min(n-drawn, r.left)
		r.left -= d
		drawn += d
		if r.left == 0 {
			a.reservations = slices.Delete(a.reservations, 0, 1)
		}
	}
	return drawn
}
