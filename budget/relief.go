// Relief: the budget as the leader of the process's account.

package budget

import (
	"time"

	"github.com/freehold-go/freehold/budget/internal/pressure"
	"github.com/freehold-go/freehold/internal/lockrank"
)

// relief makes room before the process's account refuses a request. mu is held while it does.
type relief struct {
	mu   lockrank.Mutex[lockrank.Relief]
	next time.Time // no relief before
}

// wake begins a tick soon. The process's account calls it when its level rises or becomes Calm.
func (b *Budget) wake() { b.ticks.wake() }

// relieve trims all heaps. If that is not enough, it collects Go's heap, since the next tick may
// then find that Go needs less. A relief begins once a second at most, and reliefs take at most a
// tenth of the time. Other callers wait while one runs.
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
		b.reclaimAndWait()
		b.tick()
	}
	ended := b.system.now()
	b.relief.next = ended.Add(max(roundTime, searchShare*ended.Sub(began)))
}
