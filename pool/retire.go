// Retire: epoch-based reclamation of blocks.
//
// Retired blocks wait in batches. A full batch ends the epoch. Its blocks are
// freed once that epoch has passed: every guard that was entered before the batch
// was full has left. No call waits for that; later calls check it.
//
//	open batch --full--> | epoch 7 | epoch 8 | epoch 9 | --passed, oldest first--> central

package pool

import (
	"sync"
	"unsafe"

	"github.com/freehold-go/freehold/epoch"
	"github.com/freehold-go/freehold/internal/arg"
)

// limbo has the retired blocks that are not free yet. mu guards its fields.
type limbo struct {
	mu      sync.Mutex
	open    []entry // retired since the last batch was closed
	batches []batch // oldest first
	retired int     // blocks in open and batches
}

// batch is retired blocks that are freed once the epoch has passed.
type batch struct {
	blocks []entry
	epoch  *epoch.Epoch
}

const batchBlocks = 64

// Enter returns a guard: no block that is retired from then on is handed out again
// before its Leave. It takes no lock and never waits; with Leave it
// costs two atomic operations. With Options.Domain it is the Domain's Enter.
func (b *Blocks) Enter() epoch.Guard { return b.epochs.Enter() }

// Retire frees r once every [epoch.Guard] entered before the call has left. The block
// must be out of new readers' reach before the call. It panics as Free does, and so
// does a Free of the block or a second Retire of it. An empty r is a no-op.
func (b *Blocks) Retire(r []byte) {
	if len(r) > 0 {
		b.mustBeWhole("pool.Blocks.Retire", r)
		b.retire("pool.Blocks.Retire", unsafe.Pointer(unsafe.SliceData(r)))
	}
}

func (b *Blocks) retire(call string, p unsafe.Pointer) {
	b.mustBeMade(call)
	if debugging {
		b.mustEndUntouched(call, uintptr(p))
	}
	e, ok := b.retireAs(uintptr(p), statusRetired)
	if !ok {
		b.misused(call, uintptr(p), "")
	}
	l := &b.limbo
	l.mu.Lock()
	l.open = append(l.open, e)
	l.retired++
	full := len(l.open) >= batchBlocks
	if full {
		l.seal(b.epochs)
	}
	l.mu.Unlock()
	if full {
		b.collect(false)
	}
}

// seal closes the open batch. mu is held.
func (l *limbo) seal(epochs *epoch.Domain) {
	if len(l.open) > 0 {
		l.batches = append(l.batches, batch{l.open, epochs.Advance()})
		l.open = nil
	}
}

// collect frees the batches whose epoch has passed. If all is set, it first closes the
// open batch. It reports whether it freed any.
func (b *Blocks) collect(all bool) bool {
	l := &b.limbo
	l.mu.Lock()
	if all {
		l.seal(b.epochs)
	}
	n := 0
	for n < len(l.batches) && l.batches[n].epoch.Passed() {
		l.retired -= len(l.batches[n].blocks)
		n++
	}
	var passed []batch
	if n > 0 {
		passed = append(passed, l.batches[:n]...)
		l.batches = append([]batch(nil), l.batches[n:]...)
	}
	l.mu.Unlock()
	for _, p := range passed {
		for _, e := range p.blocks {
			if debugging {
				b.poison(e.addr)
			}
			statusAt(e.status).store(statusFree)
		}
		b.giveBack(p.blocks)
	}
	return n > 0
}

// clear forgets all retired blocks.
func (l *limbo) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open, l.batches, l.retired = nil, nil, 0
}

// mustBeUnguarded panics if a guard is held that may protect a block.
func (b *Blocks) mustBeUnguarded(call string) {
	b.collect(true)
	if b.epochs.Advance().Passed() {
		return
	}
	if live, retired := b.count(call); live+retired > 0 {
		arg.Panicf(call, "a guard is held that may protect its %d live and %d retired blocks", live, retired)
	}
}
