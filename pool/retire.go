// Retire: epoch-based reclamation of blocks.
//
// Retired blocks wait in batches, on a retire list. A full batch is sealed, which ends the epoch.
// Its blocks are freed once that epoch has passed, that is, every guard that was entered before
// the batch was full has left. No call waits for that; later calls check it.

package pool

import (
	"math"
	"sync"
	"unsafe"

	"github.com/freehold-go/freehold/epoch"
	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/retire"
)

// A retireList holds the retired blocks that are not free yet. mu guards its fields; it is taken
// after central.mu.
type retireList struct {
	mu     sync.Mutex
	queue  retire.Queue[entry]
	sealed uint // number of batches sealed so far
	freed  uint // number of batches removed so far
}

const batchBlocks = 64

// statusOf returns the status of the blocks in a batch, by its number. No two of 253 batches in a
// row have the same one. This matters if a block is freed and retired concurrently, and its next
// owner retires it again: the entry of the first Retire has another status and does not free the
// block, which waits for the readers of the second.
func statusOf(batch uint) status {
	return statusRetired + status(batch%(statusOfCache-statusRetired))
}

// Enter returns a guard. A block that is retired after Enter is not handed out again before the
// guard's Leave. Enter takes no lock and never waits. With Options.Domain it is the Domain's Enter.
func (b *Blocks) Enter() epoch.Guard { return b.epochs.Enter() }

// Retire frees r once every [epoch.Guard] entered before the call has left. Unlink the block before
// the call, so that new readers cannot find it. Retire panics as Free does. A later Free or Retire
// of the block panics too. An empty r is a no-op.
//
// A later call frees the block, not the last Leave: a Retire or a Get, 64 blocks at a time, or
// Trim, Stats, or a Get without a free block.
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
	e, ok := b.retireAs(uintptr(p), statusOf(l.sealed)) // under mu: one of two concurrent calls fails
	full := ok && l.queue.Add(e) >= batchBlocks
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

// seal seals the open batch. mu is held.
func (l *retireList) seal(epochs *epoch.Domain) {
	if l.queue.Seal(epochs) {
		l.sealed++
	}
}

// collect frees the blocks whose epoch has passed, and reports whether there were any. If all is
// set, it first seals the open batch. It holds central.mu throughout, so holders of central.mu see
// each block as either retired or free.
func (b *Blocks) collect(all bool) bool {
	b.central.mu.Lock()
	defer b.central.mu.Unlock()
	for freed := false; ; freed = true {
		blocks, st := b.retireList.takePassed(b.epochs, all)
		if blocks == nil {
			return freed
		}
		b.returnTo(blocks, st)
	}
}

// takePassed removes the oldest batch and returns its blocks and their status, or nil if its epoch
// has not passed. If all is set, it first seals the open batch. The slice is valid until the next
// call. central.mu is held.
func (l *retireList) takePassed(epochs *epoch.Domain, all bool) ([]entry, status) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if all {
		l.seal(epochs)
	}
	blocks, st := l.queue.Pop(math.MaxInt), statusOf(l.freed)
	if blocks != nil {
		l.freed++
	}
	return blocks, st
}

// due reports whether collect would free blocks.
func (l *retireList) due(epochs *epoch.Domain) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seal(epochs)
	return l.queue.Passed()
}

// clear forgets all retired blocks.
func (l *retireList) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue, l.freed = retire.Queue[entry]{}, l.sealed
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
