// Text of a Shared: strings, bytes and large values, in blocks of the parent.
//
//	slot   | ref of the key, or the key | ref of the value, or the value |
//
// text.go has the kinds of text and the references, here without a head. A text never changes. When
// its entry is deleted or its value replaced, it is retired: it is freed once all guards that were
// entered before have left. A reader enters a guard before it loads the directory's entry.
//
// So a reader may read a text before it has checked the version. A slot's words are stored before
// its tag, and stay when the tag is cleared. If a reader has seen a slot's tag, the slot's texts
// were live then or later. They can only be retired after the reader entered its guard.

package hashmap

import (
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/freehold-go/freehold/epoch"
	"github.com/freehold-go/freehold/internal/retire"
)

// loadText returns the text behind the reference at p.
func loadText(p unsafe.Pointer) string { return ref(atomic.LoadUint64((*uint64)(p))).text(0) }

// storeRef sets the reference at p.
func storeRef(p unsafe.Pointer, r ref) { store64((*uint64)(p), uint64(r)) }

// textBytes returns the size of the blocks of texts.
func textBytes(texts ...ref) (bytes uintptr) {
	for _, r := range texts {
		bytes += blockBytes(0, len(r.text(0)))
	}
	return bytes
}

// appendTexts appends the texts of a slot, in a locked table.
func (m *Shared[K, V]) appendTexts(texts []ref, slot unsafe.Pointer) []ref {
	if m.keys != noText {
		texts = append(texts, *(*ref)(slot))
	}
	if m.values != noText {
		texts = append(texts, *(*ref)(m.valueIn(slot)))
	}
	return texts
}

// left ends a guard.
func (m *sharedTables) left(guard epoch.Guard) {
	guard.Leave()
	runtime.KeepAlive(m)
}

// A retireList holds the texts that wait for readers.
//
// mu guards the open texts. All writers take it, so it is held briefly. sweeping guards the queue,
// and is held while texts are freed.
type retireList struct {
	readers epoch.Domain
	freed   atomic.Uint64 // number of times that texts were freed
	bytes   atomic.Int64  // of all texts here

	mu        sync.Mutex
	open      []ref // retired since the last batch
	openBytes int

	sweeping sync.Mutex
	queue    retire.Queue[ref]
}

// A batch ends at this number of texts or bytes, whichever comes first.
const (
	batchTexts = 64
	batchBytes = 64 << 10
)

// retire frees texts, which are in no table any more, once their readers have left.
func (l *retireList) retire(m memory, texts ...ref) {
	if l.add(texts) {
		l.reclaim(m)
	}
}

// add adds texts to the open ones, and reports whether these are enough for a batch.
func (l *retireList) add(texts []ref) (full bool) {
	bytes := int(textBytes(texts...))
	l.bytes.Add(int64(bytes))
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range texts {
		if r != 0 {
			l.open = append(l.open, r)
		}
	}
	l.openBytes += bytes
	return len(l.open) >= batchTexts || l.openBytes >= batchBytes
}

// seal moves the open texts to the queue, as a batch. sweeping is held.
func (l *retireList) seal() {
	l.mu.Lock()
	l.queue.Add(l.open...)
	l.open, l.openBytes = l.open[:0], 0
	l.mu.Unlock()
	l.queue.Seal(&l.readers)
}

// reclaim makes the open texts a batch, frees the batches whose readers have left, and returns
// freed.
func (l *retireList) reclaim(m memory) uint64 {
	l.sweeping.Lock()
	defer l.sweeping.Unlock()
	l.seal()
	for texts := l.queue.Pop(math.MaxInt); texts != nil; texts = l.queue.Pop(math.MaxInt) {
		l.bytes.Add(-int64(textBytes(texts...)))
		for _, r := range texts {
			freeBlock(m, r, 0)
		}
		l.freed.Add(1)
	}
	return l.freed.Load()
}
