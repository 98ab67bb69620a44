// The tree against a model, the states of a node, and charges by any number of goroutines.

package limits

import (
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/freehold-go/freehold/budget/internal/pressure"
	"github.com/freehold-go/freehold/internal/panics"
)

// deaf is a Watcher that does nothing.
type deaf struct{}

func (deaf) Changed(pressure.Level, pressure.State) bool { return false }

// modelNode is a node as the model has it. Its use is not stored, but summed up from the charges of
// the nodes below.
type modelNode struct {
	node     *Node
	parent   *modelNode
	own      int64
	peak     int64
	asked    int64
	followed int64
	level    pressure.Level // as its watcher has it
}

// Changed compares the level before with the one that was told last.
func (x *modelNode) Changed(before pressure.Level, now pressure.State) bool {
	if before != x.level {
		panic("a change was not told")
	}
	x.level = now.Level
	return false
}

type model struct {
	t   testing.TB
	all []*modelNode
}

func newModel(t testing.TB) *model {
	m := &model{t: t}
	for _, parent := range []int{-1, 0, 0, 1, 1, 2, 2, 5} {
		x := &modelNode{}
		if parent >= 0 {
			x.parent = m.all[parent]
			x.node = New(x.parent.node, "a", x, nil)
		} else {
			x.node = New(nil, "a", x, time.Now)
		}
		m.all = append(m.all, x)
	}
	return m
}

// hard is the lower limit of those that there are.
func (x *modelNode) hard() int64 {
	switch {
	case x.asked == 0:
		return x.followed
	case x.followed == 0:
		return x.asked
	}
	return min(x.asked, x.followed)
}

func (m *model) used(x *modelNode) int64 {
	sum := x.own
	for _, y := range m.all {
		if y.parent == x {
			sum += m.used(y)
		}
	}
	return sum
}

// full returns the first node on the way up that has no room for n bytes.
func (m *model) full(x *modelNode, n int64) *Node {
	for ; x != nil; x = x.parent {
		if hard := x.hard(); n > 0 && hard != 0 && m.used(x)+n > hard {
			return x.node
		}
	}
	return nil
}

// step does one operation.
func (m *model) step(op, i, arg byte) {
	x := m.all[int(i)%len(m.all)]
	n := int64(arg) * int64(arg)
	switch op % 6 {
	case 0, 1, 2:
		full, refusal := m.full(x, n), x.node.Charge(n)
		if full == nil && refusal == nil {
			x.own += n
		} else if refusal == nil || refusal.Node != full || refusal.Bytes != n || refusal.Limit != full.hard {
			m.t.Fatalf("a charge of %d: %+v, want that %p is full", n, refusal, full)
		}
	case 3:
		n = min(n, x.own)
		x.own -= n
		x.node.Refund(n)
	case 4:
		x.asked = n * 4
		x.node.SetLimits(0, x.asked)
	case 5:
		x.followed = n * 8
		x.node.Follow(x.followed)
	}
}

// check compares the nodes with the model.
func (m *model) check() {
	sum := int64(0)
	for i, x := range m.all {
		sum += x.own
		used, lowest := m.used(x), int64(math.MaxInt64)
		for y := x; y != nil; y = y.parent {
			if hard := y.hard(); hard != 0 {
				lowest = min(lowest, hard)
			}
		}
		x.peak = max(x.peak, used)
		f := x.node.Figures()
		if f.Used != used || f.Hard != x.hard() || f.Peak != x.peak || f.State.Level != x.level {
			m.t.Fatalf("node %d: %+v, want used %d of %d, peak %d, told %v", i, f, used, x.hard(), x.peak, x.level)
		}
		if got := x.node.Lowest(); got != lowest && !(got == 0 && lowest == math.MaxInt64) {
			m.t.Fatalf("node %d: the lowest limit is %d, want %d", i, got, lowest)
		}
		if x.node.Follows() != (x.followed != 0 && x.hard() == x.followed) {
			m.t.Fatalf("node %d of %d and %d: follows: %t", i, x.asked, x.followed, x.node.Follows())
		}
		room := f.Room
		if lowest == math.MaxInt64 {
			if room != lowest {
				m.t.Fatalf("node %d has no limit, and room for %d", i, room)
			}
			continue
		}
		if x.node.MayCharge(room, 0) != nil || x.node.MayCharge(0, room+1) != nil {
			m.t.Fatalf("node %d: no room for %d", i, room)
		}
		for slack := range min(room+1, 2) {
			full, bytes := m.full(x, room+1), room+1
			if r := x.node.MayCharge(bytes-slack, slack); r == nil || *r != (Refusal{full, bytes, full.hard}) {
				m.t.Fatalf("node %d: room for %d, of which %d are slack: %+v, want that %p is full", i, bytes, slack, r, full)
			}
		}
	}
	if got := m.all[0].node.Charged(); got != sum {
		m.t.Fatalf("all have %d, want %d", got, sum)
	}
}

func (m *model) run(program []byte) {
	for ; len(program) >= 3; program = program[3:] {
		m.step(program[0], program[1], program[2])
		m.check()
	}
}

// FuzzLimits reads its input as a program: each three bytes are an operation, a node and an amount.
func FuzzLimits(f *testing.F) {
	f.Add([]byte{4, 0, 100, 0, 1, 10, 0, 3, 20, 5, 1, 6, 1, 5, 1, 3, 3, 20})
	f.Fuzz(func(t *testing.T, program []byte) { newModel(t).run(program) })
}

func TestLimitsAgainstAModel(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 1))
		program := make([]byte, 3*300)
		for i := range program {
			program[i] = byte(r.Uint32())
		}
		newModel(t).run(program)
	}
}

// Sums of charges do not overflow where there is no limit.
func TestChargesWithoutALimit(t *testing.T) {
	top := New(nil, "top", deaf{}, time.Now)
	a, b := New(top, "a", deaf{}, nil), New(top, "b", deaf{}, nil)
	if a.Charge(math.MaxInt64-10) != nil || b.Charge(10) != nil {
		t.Error("a charge was refused")
	}
	if r := b.Charge(1); r == nil || r.Node != top || r.Limit != math.MaxInt64 {
		t.Errorf("%+v", r)
	}
	if r := b.Charge(math.MaxInt64); r == nil || r.Node != b {
		t.Errorf("%+v", r)
	}
}

// Each byte counts: a level begins above its limit, and ends a 32nd below that.
func TestLevels(t *testing.T) {
	const calm, soft, hard = pressure.Calm, pressure.Soft, pressure.Hard
	at := func(l pressure.Level, wanted int64) pressure.State { return pressure.State{Level: l, Wanted: wanted} }
	type step struct {
		used int64
		want pressure.State
	}
	for _, tt := range []struct {
		soft, hard int64
		steps      []step
	}{
		{1600, 3200, []step{
			{1600, at(calm, 0)}, {1601, at(soft, 1+50)}, {1551, at(soft, 50)}, {1550, at(calm, 0)}, {1600, at(calm, 0)},
			{3100, at(soft, 1500+50)}, {3101, at(hard, 1501+50)}, {3005, at(hard, 1405+50)},
			{3004, at(soft, 1404+50)}, {3100, at(soft, 1500+50)}, {0, at(calm, 0)},
		}},
		{5000, 3200, []step{{3100, at(calm, 0)}, {3101, at(hard, 1+96)}}}, // soft begins no later than hard
		{0, 3200, []step{{2720, at(calm, 0)}, {2721, at(soft, 1+85)}}},
		{3000, 3200, []step{{3000, at(calm, 0)}, {3001, at(soft, 1+93)}}},
		{200, 3200, []step{{200, at(calm, 0)}, {201, at(soft, 1+6)}}},
		{1600, 0, []step{{1 << 30, at(soft, 1<<30-1600+50)}}},
		{0, 0, []step{{1 << 30, at(calm, 0)}}},
	} {
		n := New(nil, "a", deaf{}, time.Now)
		n.SetLimits(tt.soft, tt.hard)
		used := int64(0)
		for _, s := range tt.steps {
			if s.used > used {
				n.Charge(s.used - used)
			} else {
				n.Refund(used - s.used)
			}
			used = s.used
			if got := n.State(); got != s.want {
				t.Errorf("soft %d, hard %d, used %d: %+v, want %+v", tt.soft, tt.hard, used, got, s.want)
			}
		}
	}
}

// A refusal is over when the largest request has room, when there is no limit, or in time.
func TestRefusalIsOver(t *testing.T) {
	now := time.Unix(1e9, 0)
	n := New(nil, "a", deaf{}, func() time.Time { return now })
	n.SetLimits(0, 1000)
	refuse := func(bytes int64) {
		t.Helper()
		if full, hasPeers := n.Refuse(bytes, now); full != n || hasPeers {
			t.Errorf("%p is full, hasPeers: %t", full, hasPeers)
		}
	}
	want := func(l pressure.Level, wanted int64) {
		t.Helper()
		if got := n.State(); got != (pressure.State{Level: l, Wanted: wanted}) {
			t.Errorf("%+v, want %v %d", got, l, wanted)
		}
	}
	const soft = 850 / pressure.HysteresisShare
	n.Charge(600)
	refuse(500)
	refuse(450)
	want(pressure.Hard, 500+soft)
	n.Refund(99)
	want(pressure.Hard, 500+soft)
	n.Refund(1)
	want(pressure.Calm, 0)
	refuse(1001) // never fits
	want(pressure.Calm, 0)
	refuse(1000)
	want(pressure.Hard, 1000+soft)
	n.SetLimits(0, 0)
	want(pressure.Calm, 0)
	n.SetLimits(0, 1000)
	refuse(1000)
	now = now.Add(RefusedTime - 1)
	want(pressure.Hard, 1000+soft)
	now = now.Add(1)
	want(pressure.Calm, 0)
	if n.Figures().Refusals != 5 {
		t.Errorf("%+v", n.Figures())
	}
}

// A limit has peers if the full node is another one, or has open nodes below.
func TestRefusalOfASharedLimit(t *testing.T) {
	top := New(nil, "top", deaf{}, time.Now)
	top.SetLimits(0, 100)
	if full, _ := top.Refuse(100, time.Time{}); full != nil {
		t.Error("full with all of its room")
	}
	want := func(n *Node, hasPeers bool) {
		t.Helper()
		if full, got := n.Refuse(101, time.Time{}); full != top || got != hasPeers {
			t.Errorf("%v is full, hasPeers: %t, want %t", full.Name(), got, hasPeers)
		}
	}
	want(top, false)
	a := New(top, "a", deaf{}, nil)
	want(top, true)
	want(a, true)
	a.Close()
	want(top, false)
}

func TestHasBelow(t *testing.T) {
	top := New(nil, "top", deaf{}, time.Now)
	a := New(top, "a", deaf{}, nil)
	b := New(a, "b", deaf{}, nil)
	if !top.HasBelow() || !a.HasBelow() || b.HasBelow() {
		t.Error("b is below a, and a below top")
	}
	b.Close()
	if !top.HasBelow() || a.HasBelow() {
		t.Error("b, below a, is closed")
	}
}

func TestNames(t *testing.T) {
	top := New(nil, "process", deaf{}, time.Now)
	a := New(New(top, "search", deaf{}, nil), "tenant", deaf{}, nil)
	b := New(top, "b", deaf{}, nil)
	if a.Name() != "process/search/tenant" || !a.IsIn(top) || !a.IsIn(a) || a.IsIn(b) || top.IsIn(a) {
		t.Errorf("%s", a.Name())
	}
	b.Close()
	panics.Want(t, `freehold: budget.NewAccount: account "process/b" is closed`, func() { New(b, "c", deaf{}, nil) })
	panics.Want(t, `freehold: F: account "process/b" is closed`, func() { b.MustBeOpen("F") })
	panics.Want(t, `freehold: F: zero value: budget.NewAccount makes an Account`, func() { (*Node)(nil).MustBeOpen("F") })
	if !b.Closed() || a.Closed() {
		t.Error("the wrong one is closed")
	}
}

// Any number of goroutines charge and refund. At any moment no node is above its limit, and each
// has used the sum of the nodes below.
func TestChargesTogether(t *testing.T) {
	top := New(nil, "top", deaf{}, time.Now)
	nodes := []*Node{top}
	for i, hard := range []int64{24, 16, 16, 10, 10, 10, 10} {
		if i > 0 {
			nodes = append(nodes, New(nodes[(i-1)/2], "n", deaf{}, nil))
		}
		nodes[i].SetLimits(0, hard)
	}
	look := func() {
		top.tree.mu.Lock()
		defer top.tree.mu.Unlock()
		sums := map[*Node]int64{}
		for _, n := range nodes {
			sums[n.parent] += n.used
		}
		for i, n := range nodes {
			if n.used > n.hard || i < 3 && n.used != sums[n] {
				t.Errorf("node %d has used %d of %d, and those below %d", i, n.used, n.hard, sums[n])
			}
		}
	}
	var work sync.WaitGroup
	for g := range 4 {
		work.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 2))
			for range 2000 {
				n, bytes := nodes[3+r.IntN(4)], r.Int64N(12)
				if n.Charge(bytes) == nil {
					look()
					n.Refund(bytes)
				}
			}
		})
	}
	work.Wait()
	look()
	if top.Charged() != 0 {
		t.Errorf("%d bytes are left", top.Charged())
	}
}
