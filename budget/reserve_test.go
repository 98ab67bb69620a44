// Reservations: what they guarantee, and where their charge goes.

package budget

import (
	"errors"
	"math"
	"sync"
	"testing"
)

func mustReserve(t testing.TB, a *Account, bytes int64) *Reservation {
	t.Helper()
	r, err := a.Reserve(bytes)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// wantUsed checks what accounts are charged.
func wantUsed(t testing.TB, want int64, of ...*Account) {
	t.Helper()
	for _, a := range of {
		if got := a.Stats().Used; got != want {
			t.Errorf("%v is charged %d, want %d", a, got, want)
		}
	}
}

// A reservation serves blocks of all sizes, to its end.
func TestReservationServesSmallBlocks(t *testing.T) {
	for _, size := range []int{100, 1000, 20000} {
		top := newAccount(t, nil, "top", 8<<20)
		a, other := newAccount(t, top, "a", 0), newAccount(t, top, "other", 0)
		mustReserve(t, a, 2<<20)
		mustAlloc(t, other, 5<<20)
		payer{other}.Charge(int(other.Stats().Room))
		sum := 0
		for {
			if _, err := a.Alloc(size, 8); err != nil {
				wantFull(t, err, top)
				break
			}
			sum += size
		}
		if sum < 3<<19 {
			t.Errorf("%d bytes in blocks of %d, of a reservation of 2 MiB", sum, size)
		}
	}
}

func TestReserveWithoutRoom(t *testing.T) {
	top := newAccount(t, nil, "top", 8<<20)
	a, other := newAccount(t, top, "a", 4<<20), newAccount(t, top, "other", 0)
	_, err := a.Reserve(5 << 20)
	wantFull(t, err, a)
	other.Free(mustAlloc(t, other, 7<<20))
	r := mustReserve(t, a, 4<<20) // free pages are given back
	_, err = a.Reserve(1)
	wantFull(t, err, a)
	_, err = other.Reserve(5 << 20)
	wantFull(t, err, top)
	wantUsed(t, 4<<20, a)
	none := mustReserve(t, a, 0)
	none.Release()
	r.Release()
	wantUsed(t, 0, a)
}

// Sums of charges do not overflow where nothing limits them.
func TestReserveWithoutALimit(t *testing.T) {
	const all = math.MaxInt64
	top := newAccount(t, nil, "top", 0)
	a, b := newAccount(t, top, "a", 0), newAccount(t, top, "b", 0)
	r := mustReserve(t, a, all-10<<20)
	mustAlloc(t, a, 1<<20)
	wantUsed(t, all-10<<20, a, top)
	block := mustAlloc(t, b, 8<<20)
	_, err := b.Reserve(all)
	wantFull(t, err, b)
	_, err = b.Reserve(all - b.Stats().Used)
	wantFull(t, err, top)
	if full := new(FullError); !errors.As(err, &full) || full.Limit != all {
		t.Errorf("%+v", full)
	}
	_, err = b.Alloc(8<<20, 8)
	wantFull(t, err, top)
	wantUsed(t, all-10<<20+b.Stats().Committed, top)
	b.Free(block)
	r.Release()
	wantUsed(t, a.Stats().Committed, a)
}

// The race detector sees what is not guarded.
func TestTransferBesideOthers(t *testing.T) {
	top := newAccount(t, nil, "top", 1000)
	a, b := newAccount(t, top, "a", 0), newAccount(t, top, "b", 0)
	r := mustReserve(t, a, 100)
	var all sync.WaitGroup
	for _, to := range []*Account{a, b, top} {
		all.Go(func() {
			for range 100 {
				if err := r.Transfer(to); err != nil || r.Left() != 100 {
					t.Errorf("%v, %d left", err, r.Left())
				}
			}
		})
	}
	all.Wait()
	all.Go(r.Release)
	all.Go(func() { r.Transfer(a) })
	all.Wait()
	wantUsed(t, 0, top, a, b)
}
