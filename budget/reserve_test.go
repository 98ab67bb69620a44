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

func TestReservationIsThereWhenOthersTakeAll(t *testing.T) {
	top := newAccount(t, nil, "top", 32<<20)
	a, greedy := newAccount(t, top, "a", 0), newAccount(t, top, "greedy", 0)
	r := mustReserve(t, a, 12<<20)
	for {
		if _, err := greedy.Alloc(64<<10, 8); err != nil {
			wantFull(t, err, top)
			break
		}
	}
	if st := a.Stats(); st.Reserved != 12<<20 || st.Used != 12<<20 || st.Room < 12<<20 {
		t.Errorf("%+v", st)
	}
	var live [][]byte
	for range 11 {
		live = append(live, mustAlloc(t, a, 1<<20))
	}
	if left := r.Left(); left > 1<<20 || left <= 0 || a.Stats().Used != 12<<20 {
		t.Errorf("%d left, %v", left, a)
	}
	if _, err := greedy.Alloc(512<<10, 8); err == nil {
		t.Error("what is left was taken")
	}
	r.Release()
	r.Release()
	wantUsed(t, a.Stats().Committed, a)
	mustAlloc(t, greedy, 512<<10)
	for _, b := range live {
		a.Free(b)
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

// A reservation of an account is for those below it too.
func TestReservationServesAccountsBelow(t *testing.T) {
	top := newAccount(t, nil, "top", 16<<20)
	middle := newAccount(t, top, "middle", 0)
	a, other := newAccount(t, middle, "a", 0), newAccount(t, top, "other", 0)
	r := mustReserve(t, middle, 8<<20)
	mustAlloc(t, other, 7<<20)
	mustAlloc(t, a, 7<<20)
	wantUsed(t, 8<<20, middle)
	if used := a.Stats().Used; used+r.Left() != 8<<20 {
		t.Errorf("%d used and %d left", used, r.Left())
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

// The oldest reservation pays first.
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

func TestReservationsAreUsedInOrder(t *testing.T) {
	a := newAccount(t, nil, "a", 0)
	p := payer{a}
	one, two := mustReserve(t, a, 100), mustReserve(t, a, 50)
	want := func(left1, left2, used int64) {
		t.Helper()
		if one.Left() != left1 || two.Left() != left2 || a.Stats().Reserved != left1+left2 {
			t.Errorf("%d and %d left, want %d and %d: %v", one.Left(), two.Left(), left1, left2, a)
		}
		wantUsed(t, used, a)
	}
	p.Charge(70)
	want(30, 50, 150)
	p.Charge(40)
	want(0, 40, 150)
	p.Refund(110) // to the limit, not to the reservations
	want(0, 40, 40)
	one.Release()
	two.Release()
	want(0, 0, 0)
}

func TestTransfer(t *testing.T) {
	top := newAccount(t, nil, "top", 1000)
	left, right := newAccount(t, top, "left", 0), newAccount(t, top, "right", 300)
	a, b := newAccount(t, left, "a", 0), newAccount(t, right, "b", 0)
	r := mustReserve(t, a, 200)
	wantUsed(t, 200, a, left, top)
	for _, tt := range []struct {
		to         *Account
		used, free []*Account
	}{
		{b, []*Account{b, right, top}, []*Account{a, left}},
		{b, []*Account{b, right, top}, []*Account{a, left}},
		{top, []*Account{top}, []*Account{a, b, left, right}}, // up
		{a, []*Account{a, left, top}, []*Account{b, right}},   // down
	} {
		if err := r.Transfer(tt.to); err != nil || r.Left() != 200 || tt.to.Stats().Reserved != 200 {
			t.Errorf("%v, %d left, %v", err, r.Left(), tt.to)
		}
		wantUsed(t, 200, tt.used...)
		wantUsed(t, 0, tt.free...)
	}
	payer{right}.Charge(101)
	more := mustReserve(t, left, 200)
	wantFull(t, more.Transfer(b), right)
	wantUsed(t, 400, left)
	wantUsed(t, 0, b)
	wantUsed(t, 101, right)
	more.Release()
	payer{right}.Refund(101)
	wantPanic(t, "freehold: Reservation.Transfer: the accounts are not in one tree", func() { r.Transfer(newAccount(t, nil, "other", 0)) })
	wantPanic(t, "freehold: Reservation.Transfer: the accounts are not in one tree", func() { r.Transfer(nil) })
	r.Release()
	if err := r.Transfer(b); err != nil {
		t.Error(err)
	}
	wantUsed(t, 0, a, b, left)
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

// What a reservation on the new way pays is charged above already.
func TestTransferAndMoveAreServedByReservations(t *testing.T) {
	top := newAccount(t, nil, "top", 1000)
	left, right := newAccount(t, top, "left", 0), newAccount(t, top, "right", 0)
	a, b := newAccount(t, left, "a", 0), newAccount(t, right, "b", 0)
	for _, move := range []func() error{
		func() error { return mustReserve(t, a, 200).Transfer(b) },
		func() error { payer{a}.Charge(200); return a.MoveTo(right) },
	} {
		r := mustReserve(t, right, 150)
		before := right.Stats().Used
		if err := move(); err != nil {
			t.Fatal(err)
		}
		wantUsed(t, before+50, right, top)
		if r.Left() != 0 {
			t.Errorf("%d left", r.Left())
		}
	}
	payer{a}.Refund(200)
}
