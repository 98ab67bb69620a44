// Root: the account of the process, whose limit the budget moves.
//
//	limit of the process
//	|<------------------------------------------------------------------->|
//	| the account's limit | other heaps | others | Go's floor | headroom  |
//	| used | left         |
//
// A tick gives the account what it has and what is left. The account tells the budget of its
// pressure, and has no rounds of its own: there is one list of callbacks for both.

package budget

import (
	"time"

	"github.com/freehold-go/freehold/budget/internal/pressure"
	"github.com/freehold-go/freehold/internal/lockrank"
)

// Account returns the account of the process, for subsystems and tenants below it. The first call
// makes it, and all return the same one. Close it before or after Stop: blocks stay until then.
//
// Its hard limit is what off-heap memory may take: the budget's limit less headroom, others,
// other heaps, and what Go needs at least. It follows when one of these changes, as when the
// container is resized, within 5 ms of that being found. Limits of SetLimits hold beside it, so
// the lower one counts. A limit that falls below what is in use takes nothing away: the pressure
// rises, and requests for more are refused. Before a request is refused for it, free memory of
// all heaps is given back and Go's heap is collected, once a second at most: the caller waits for
// that.
//
// Its pressure is a part of the Budget's. When its soft limit is crossed, or a request refused,
// the functions of OnPressure are called, which are those of [Budget.OnPressure], whichever of
// the two methods they came by; the figures of their calls are in [Stats]. An account below has
// functions of its own, for its own limits.
//
// Stop lifts the limit, and the functions are not called from then on.
func (b *Budget) Account() *Account {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.account == nil {
		b.account = makeAccount(nil, &AccountOptions{Name: "process", Logger: b.options.Logger}, b.system.now, b)
		b.update()
	}
	return b.account
}

// charged returns the bytes of off-heap memory that the account and those below have. mu is held.
func (b *Budget) charged() int64 {
	if b.account == nil {
		return 0
	}
	return b.account.node.Charged()
}

// share gives the account what is left by the figures, and returns its pressure. mu is held.
func (b *Budget) share(f figures) pressure.State {
	if b.account == nil {
		return pressure.State{}
	}
	left := f.limit - f.headroom - f.needed()
	return b.account.node.Follow(max(f.charged+left, 1)) // 0 would be no limit
}

// wake has a tick begin.
func (b *Budget) wake() { b.ticks.wake() }

// relief is what is done before the account refuses a request. mu is held meanwhile.
type relief struct {
	mu   lockrank.Mutex[lockrank.Relief]
	next time.Time // not before
}

// relieve has the free memory of all heaps given back, and then Go's heap collected, as the next
// look at the figures may find that Go needs less, until it is enough. It does so once a second
// at most, and for a part of the time. Who comes meanwhile waits for it.
func (b *Budget) relieve(enough func() bool) {
	b.relief.mu.Lock()
	defer b.relief.mu.Unlock()
	began := b.system.now()
	if enough() || pressure.Ahead(began, b.relief.next) {
		return
	}
	b.system.trim()
	b.tick()
	if !enough() {
		b.collect()
		b.tick()
	}
	ended := b.system.now()
	b.relief.next = ended.Add(max(roundTime, searchShare*ended.Sub(began)))
}
