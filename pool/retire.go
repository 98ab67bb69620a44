// Retire: epoch-based reclamation of blocks.
//
// Retired blocks wait in batches, on a retire list. A full batch ends the epoch. Its blocks are
// freed once that epoch has passed, that is, every guard that was entered before the batch was full
// has left. No call waits for that; later calls check it.
//
//	open batch --full--> | epoch 7 | epoch 8 | epoch 9 | --passed, oldest first--> central

package pool

import (
	"sync"
	"unsafe"

	"github.com/freehold-go/freehold/epoch"
	"github.com/freehold-go/freehold/internal/arg"
)

// A retireList holds the retired blocks that are not free yet. mu guards its fields; it is taken
// after central.mu.
type retireList struct {
	mu      sync.Mutex
	open    []entry // retired since the last batch was closed
	batches []batch // oldest first
	retired int     // number of blocks in open and batches
	sealed  uint    // number of batches closed so far
}

// A batch is retired blocks that are freed once the epoch has passed.
type batch struct {
	blocks []entry
	status status // of the blocks
	epoch  *epoch.Epoch
}

const batchBlocks = 64

// status returns the status of the blocks in open. It differs from the status of at least 252
// batches before. So if a block is freed and retired concurrently, and its next owner retires it
// again, the entry of the first Retire does not free it: it waits for the guards of the second.
func (l *retireList) status() status {
	return statusRetired + status(l.sealed%(statusOfCache-statusRetired))
}

// Enter returns a guard. A block that is retired after Enter is not handed out again before the
// guard's Leave. Enter takes no lock and never waits. With Options.Domain it is the Domain's Enter.
func (b *Blocks) Enter() epoch.Guard { return b.epochs.Enter() }

// Retire frees r once every [epoch.Guard] entered before the call has left. Unlink the block before
// the call, so that new readers cannot find it. Retire panics as Free does. A later Free or Retire
// of the block panics too. An empty r is a no-op.
func (b *Blocks) Retire(r []byte) {
	if len(r) > 0 {
		b.mustBeWhole("pool.Blocks.Retire", r)
		b.retire("pool.Blocks.Retire", unsafe.Pointer(unsafe.SliceData(r)))
	}
}

func (b *Blocks) retire(call string, p unsafe.Pointer) {
	b.mustBeMade(call)
	if b.checked {
		b.mustEndUntouched(call, uintptr(p))
	}
	l := &b.retireList
	l.mu.Lock()
	e, ok := b.retireAs(uintptr(p), l.status()) // under mu: one of two concurrent calls fails
	if ok {
		l.open = append(l.open, e)
		l.retired++
	}
	full := len(l.open) >= batchBlocks
	if full {
		l.seal(b.epochs)
	}
	l.mu.Unlock()
	if !ok {
		b.misused(call, uintptr(p), "")
	}
	if full {
		b.collect(false)
	}
}

// seal closes the open batch. mu is held.
func (l *retireList) seal(epochs *epoch.Domain) {
	if len(l.open) > 0 {
		l.batches = append(l.batches, batch{l.open, l.status(), epochs.Advance()})
		l.open = nil
		l.sealed++
	}
}

// collect frees the blocks of takePassed, and reports whether there were any. It holds central.mu
// throughout, so holders of central.mu see each block as either retired or free.
func (b *Blocks) collect(all bool) bool {
	b.central.mu.Lock()
	defer b.central.mu.Unlock()
	passed := b.retireList.takePassed(b.epochs, all)
	for _, p := range passed {
		b.returnTo(p.blocks, p.status)
	}
	return len(passed) > 0
}

// takePassed removes the batches whose epoch has passed. If all is set, it first closes the open
// batch.
func (l *retireList) takePassed(epochs *epoch.Domain, all bool) (passed []batch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if all {
		l.seal(epochs)
	}
	n := 0
	for n < len(l.batches) && l.batches[n].epoch.Passed() {
		l.retired -= len(l.batches[n].blocks)
		n++
	}
	if n > 0 {
		passed = append(passed, l.batches[:n]...)
		l.batches = append([]batch(nil), l.batches[n:]...)
	}
	return passed
}

// due reports whether the open batch has blocks, or the epoch of another batch has passed.
func (l *retireList) due() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.open) > 0 || len(l.batches) > 0 && l.batches[0].epoch.Passed()
}

// clear forgets all retired blocks.
func (l *retireList) clear() {
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
