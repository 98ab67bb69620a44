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

func (m *model) used(x *modelAccount) int64 {
	sum := x.own
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

// try charges the model and an account. That must fail if it brings an account above its limit.
func (m *model) try(x *modelAccount, n int64) {
	before := m.usedOfAll()
	x.own += n
	fails := false
	for i, used := range m.usedOfAll() {
		hard := m.all[i].hard()
		fails = fails || hard != 0 && used > hard && used > before[i]
	}
	err := payer{x.account}.Charge(int(n))
	var full *FullError
	if fails != errors.As(err, &full) || (err != nil) != fails {
		m.t.Fatalf("%v, want that it fails: %t", err, fails)
	}
	if fails {
		x.own -= n
	}
}

// step does one operation.
func (m *model) step(op, i, arg byte) {
	x := m.all[int(i)%len(m.all)]
	n := int64(arg) * int64(arg)
	switch op % 6 {
	case 0, 1, 2:
		m.try(x, n)
	case 3:
		n = min(n, x.own)
		x.own -= n
		give(x.account, n)
	case 4:
		x.asked = n * 4
		x.account.SetLimits(0, x.asked)
	case 5: // as a budget does with the top one
		x.followed = n * 8
		x.account.follow(x.followed)
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
	if a.used != used || a.hard != x.hard() || a.peak != x.peak {
		m.t.Fatalf("account %d has used %d of %d, at most %d, want %d of %d, %d", i, a.used, a.hard, a.peak, used, x.hard(), x.peak)
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
	f.Add([]byte{4, 0, 100, 0, 1, 10, 0, 3, 20, 5, 1, 6, 1, 5, 1, 3, 3, 20})
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

// The error has the account that is full, the bytes of the request, and the limit.
func TestFullErrorHasFigures(t *testing.T) {
	top := newAccount(t, nil, "top", 1000)
	a, b := newAccount(t, top, "a", 300), newAccount(t, top, "b", 0)
	p := payer{a}
	mustTake(t, a, 100)
	for name, tt := range map[string]struct {
		err  error
		want FullError
	}{
		"a charge":               {p.Charge(201), FullError{a, 201, 300}},
		"a charge of the parent": {payer{b}.Charge(901), FullError{top, 901, 1000}},
		"slack":                  {p.MayCharge(100, 101), FullError{a, 201, 300}},
		"slack of the parent":    {payer{b}.MayCharge(800, 101), FullError{top, 901, 1000}},
	} {
		var full *FullError
		if !errors.As(tt.err, &full) || *full != tt.want {
			t.Errorf("%s: %v, want %v", name, tt.err, &tt.want)
		}
	}
	for _, err := range []error{p.MayCharge(100, 100), p.MayCharge(0, 1000), p.Charge(200), payer{b}.MayCharge(700, 0)} {
		if err != nil {
			t.Error(err)
		}
	}
	p.Refund(300)
}

// Any number of goroutines allocate and are charged. No account is above its limit at any
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
			if own[i] -= sums[a]; own[i] < 0 || a.used > a.hard || a.peak > a.hard {
				t.Errorf("account %d of %d has used %d, and those below %d", i, a.hard, a.used, sums[a])
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
			for range rounds {
				c := caches[r.IntN(len(caches))]
				switch r.IntN(8) {
				case 0:
					if n := r.Int64N(4 << 20); take(c.account, n) == nil {
						give(c.account, n)
					}
				case 1:
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
		if st.Live != 0 || own[i] != st.Committed {
			t.Errorf("%d charged by the heap of %+v", own[i], st)
		}
	}
}
