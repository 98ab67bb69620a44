// The ledger against a model, and under any number of goroutines.

package budget

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

// modelAccount is an account as the model has it. What it is charged is not stored, but summed
// up from what those below have.
type modelAccount struct {
	account  *Account
	parent   *modelAccount
	own      int64 // by its heap
	peak     int64
	asked    int64
	followed int64 // by a budget
	reserved []*modelReservation
}

type modelReservation struct {
	r    *Reservation
	left int64
}

// model is a tree of accounts without blocks, and what is known of it.
type model struct {
	t   testing.TB
	all []*modelAccount
}

func newModel(t testing.TB) *model {
	m := &model{t: t}
	for _, parent := range []int{-1, 0, 0, 1, 1, 2, 2, 5} {
		x := &modelAccount{}
		if parent >= 0 {
			x.parent = m.all[parent]
			x.account = newAccount(t, x.parent.account, "a", 0)
		} else {
			x.account = newAccount(t, nil, "a", 0)
		}
		m.all = append(m.all, x)
	}
	return m
}

// hard is the lower limit of those that there are.
func (x *modelAccount) hard() int64 {
	switch {
	case x.asked == 0:
		return x.followed
	case x.followed == 0:
		return x.asked
	}
	return min(x.asked, x.followed)
}

func (x *modelAccount) left() (sum int64) {
	for _, r := range x.reserved {
		sum += r.left
	}
	return sum
}

func (m *model) used(x *modelAccount) int64 {
	sum := x.own + x.left()
	for _, y := range m.all {
		if y.parent == x {
			sum += m.used(y)
		}
	}
	return sum
}

func (m *model) usedOfAll() (used []int64) {
	for _, x := range m.all {
		used = append(used, m.used(x))
	}
	return used
}

func (x *modelAccount) isIn(y *modelAccount) bool {
	return x != nil && (x == y || x.parent.isIn(y))
}

// draw takes n bytes out of the reservations of an account and those above, up to top.
func (x *modelAccount) draw(n int64, top *modelAccount) {
	for ; x != top; x = x.parent {
		for _, r := range x.reserved {
			d := min(n, r.left)
			r.left -= d
			n -= d
		}
	}
}

// try changes the model, and checks that call fails if that brings an account above its limit
// which it was not above, or higher; then the model is as before.
func (m *model) try(change func(), call func() error) (done bool) {
	before, usedBefore := m.copy(), m.usedOfAll()
	change()
	fails := false
	for i, used := range m.usedOfAll() {
		if hard := m.all[i].hard(); hard != 0 && used > hard && used > usedBefore[i] {
			fails = true
		}
	}
	err := call()
	var full *FullError
	if fails != errors.As(err, &full) || (err != nil) != fails {
		m.t.Fatalf("%v, want that it fails: %t", err, fails)
	}
	if fails {
		m.restore(before)
	}
	return !fails
}

func (m *model) copy() (all []modelAccount) {
	for _, x := range m.all {
		y := *x
		y.reserved = nil
		for _, r := range x.reserved {
			c := *r
			y.reserved = append(y.reserved, &c)
		}
		all = append(all, y)
	}
	return all
}

func (m *model) restore(all []modelAccount) {
	for i := range all {
		*m.all[i] = all[i]
	}
}

// step does one operation.
func (m *model) step(op, i, arg byte) {
	x := m.all[int(i)%len(m.all)]
	n, other := int64(arg)*int64(arg), m.all[int(arg)%len(m.all)]
	a := x.account
	switch op % 9 {
	case 0, 1:
		m.try(func() { x.own += n; x.draw(n, nil) }, func() error { return payer{a}.Charge(int(n)) })
	case 2:
		n = min(n, x.own)
		x.own -= n
		payer{a}.Refund(int(n))
	case 3:
		r := &modelReservation{left: n}
		m.try(func() {
			x.reserved = append(x.reserved, r)
			x.parent.draw(n, nil)
		}, func() (err error) {
			r.r, err = a.Reserve(n)
			return err
		})
	case 4:
		if len(x.reserved) > 0 {
			x.reserved[0].r.Release()
			x.reserved[0].r.Release()
			x.reserved = x.reserved[1:]
		}
	case 5:
		if len(x.reserved) == 0 {
			return
		}
		r := x.reserved[0]
		m.try(func() {
			top := x
			for !other.isIn(top) {
				top = top.parent
			}
			x.reserved = x.reserved[1:]
			if other != top {
				other.parent.draw(r.left, top)
			}
			other.reserved = append(other.reserved, r)
		}, func() error { return r.r.Transfer(other.account) })
	case 6:
		if other.isIn(x) {
			return
		}
		m.try(func() {
			top := x.parent
			for !other.isIn(top) {
				top = top.parent
			}
			used := m.used(x)
			x.parent = other
			other.draw(used, top)
		}, func() error { return a.MoveTo(other.account) })
	case 7:
		x.asked = n * 4
		a.SetLimits(0, x.asked)
	case 8: // as a budget does with the top one
		x.followed = n * 8
		a.follow(x.followed)
	}
}

// check compares the accounts with the model.
func (m *model) check() {
	sum := int64(0)
	for _, x := range m.all {
		sum += x.own
	}
	if got := m.all[0].account.ledger.committed; got != sum {
		m.t.Fatalf("the heaps have %d, want %d", got, sum)
	}
	for i, x := range m.all {
		if room := m.checkAccount(i, x); room < 1<<30 {
			p := payer{x.account}
			if p.MayCharge(int(room), 0) != nil || p.MayCharge(int(room+1), 0) == nil {
				m.t.Fatalf("account %d: room for %d", i, room)
			}
		}
	}
}

// checkAccount compares an account with the model, and returns its room.
func (m *model) checkAccount(i int, x *modelAccount) (room int64) {
	a, used := x.account, m.used(x)
	x.peak = max(x.peak, used)
	a.ledger.mu.Lock()
	defer a.ledger.mu.Unlock() // also after Fatalf
	parent := (*Account)(nil)
	if x.parent != nil {
		parent = x.parent.account
	}
	if a.used != used || a.reserved != x.left() || a.hard != x.hard() || a.parent != parent || a.peak != x.peak {
		m.t.Fatalf("account %d has used %d, at most %d, and reserved %d, want %d, %d and %d", i, a.used, a.peak, a.reserved, used, x.peak, x.left())
	}
	for _, r := range x.reserved {
		if r.r.left != r.left || r.r.account != a {
			m.t.Fatalf("account %d: reservation of %d, want %d", i, r.r.left, r.left)
		}
	}
	return a.room()
}

func (m *model) run(program []byte) {
	for ; len(program) >= 3; program = program[3:] {
		m.step(program[0], program[1], program[2])
		m.check()
	}
}

// FuzzLedger reads its input as a program: each three bytes are an operation, an account and
// an amount or another account.
func FuzzLedger(f *testing.F) {
	f.Add([]byte{7, 0, 100, 3, 1, 10, 0, 3, 20, 5, 1, 6, 6, 5, 1, 4, 6, 0})
	f.Fuzz(func(t *testing.T, program []byte) { newModel(t).run(program) })
}

func TestLedgerAgainstAModel(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 1))
		program := make([]byte, 3*300)
		for i := range program {
			program[i] = byte(r.Uint32())
		}
		newModel(t).run(program)
	}
}

// The error has the account that is full, what it had to have beside reservations, and its limit.
func TestFullErrorHasFigures(t *testing.T) {
	top := newAccount(t, nil, "top", 1000)
	a, b := newAccount(t, top, "a", 300), newAccount(t, top, "b", 0)
	mustReserve(t, a, 100)
	p := payer{a}
	_, reserveErr := b.Reserve(950)
	for name, tt := range map[string]struct {
		err  error
		want FullError
	}{
		"a charge":               {p.Charge(350), FullError{a, 250, 300}},
		"a charge of the parent": {payer{b}.Charge(901), FullError{top, 901, 1000}},
		"a reservation":          {reserveErr, FullError{top, 950, 1000}},
		"slack":                  {p.MayCharge(200, 101), FullError{a, 201, 300}},
		"slack of the parent":    {payer{b}.MayCharge(800, 101), FullError{top, 901, 1000}},
	} {
		var full *FullError
		if !errors.As(tt.err, &full) || *full != tt.want {
			t.Errorf("%s: %v, want %v", name, tt.err, &tt.want)
		}
	}
	for _, err := range []error{p.MayCharge(200, 100), p.MayCharge(100, 1000), p.Charge(300), payer{b}.MayCharge(700, 0)} {
		if err != nil {
			t.Error(err)
		}
	}
	p.Refund(300)
}

// Any number of goroutines allocate, reserve and move. No account is above its limit at any
// moment, and each has the sum of what those below have.
func TestAccountsTogether(t *testing.T) {
	const rounds = 400
	top := newAccount(t, nil, "top", 24<<20)
	middles := []*Account{newAccount(t, top, "m0", 16<<20), newAccount(t, top, "m1", 16<<20)}
	var leaves []*Account
	for i := range 4 {
		leaves = append(leaves, newAccount(t, middles[i%2], "leaf", 10<<20))
	}
	all := slices.Concat([]*Account{top}, middles, leaves)
	var own [7]int64
	look := func() {
		top.ledger.mu.Lock()
		defer top.ledger.mu.Unlock()
		sums := map[*Account]int64{}
		for i, a := range all {
			own[i] = a.used
			sums[a.parent] += a.used
		}
		for i, a := range all {
			if own[i] -= a.reserved + sums[a]; own[i] < 0 || a.used > a.hard || a.reserved < 0 || a.peak > a.hard {
				t.Errorf("account %d of %d has used %d and reserved %d, and those below %d", i, a.hard, a.used, a.reserved, sums[a])
			}
		}
	}
	var done atomic.Bool
	var watch, work sync.WaitGroup
	watch.Go(func() {
		for !done.Load() {
			look()
			runtime.Gosched()
		}
	})
	for g := range 4 {
		work.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 2))
			var caches []*fifo
			for _, a := range leaves {
				caches = append(caches, &fifo{account: a})
			}
			var reserved []*Reservation
			for range rounds {
				c := caches[r.IntN(len(caches))]
				switch r.IntN(8) {
				case 0:
					res, err := c.account.Reserve(r.Int64N(4 << 20))
					if err == nil {
						reserved = append(reserved, res)
					}
				case 1:
					if len(reserved) > 0 {
						reserved[0].Transfer(c.account)
						reserved[0].Release()
						reserved = reserved[1:]
					}
				case 2:
					leaves[3].MoveTo(middles[r.IntN(2)])
				case 3:
					c.evict(r.IntN(8 << 20))
				default:
					b, err := c.account.AllocOrEvict(1+r.IntN(2<<r.IntN(20)), 8, c.evict)
					if err == nil {
						b[0], b[len(b)-1] = byte(g), byte(g)
						c.live = append(c.live, b)
					}
				}
			}
			for _, c := range caches {
				c.evict(1 << 30)
			}
			for _, r := range reserved {
				r.Release()
			}
		})
	}
	work.Wait()
	done.Store(true)
	watch.Wait()
	look()
	top.Trim()
	look()
	for i, a := range all {
		st := a.Stats()
		if st.Live != 0 || st.Reserved != 0 || own[i] != st.Committed {
			t.Errorf("%d charged by the heap of %+v", own[i], st)
		}
	}
}
