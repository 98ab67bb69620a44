// Text of a Shared: strings, bytes and large values, in blocks of the parent.
//
//	slot   | ref of the key, or the key | ref of the value, or the value |
//
// Kinds of text and references are as in owned.go, without a head. A text does not change. When its entry is deleted, or its value replaced, it is retired, and
// freed once the guards that were entered before have left. A reader enters a guard before it
// loads the directory's entry.
//
// So a reader may read a text before it has checked the version. A slot's words are
// stored before its tag, and stay when the tag is cleared. A slot whose tag a reader has
// seen therefore refers to texts that were live then or later, and those were
// retired, if at all, after the reader entered its guard.

package hashmap

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/epoch"
)

// loadText returns the text of the reference at p.
func loadText(p unsafe.Pointer) string { return ref(atomic.LoadUint64((*uint64)(p))).text(0) }

// storeRef sets the reference at p.
func storeRef(p unsafe.Pointer, r ref) { store64((*uint64)(p), uint64(r)) }

// newText returns a reference to a copy of text.
func (m *sharedTables) newText(text string) (ref, error) {
	if text == "" {
		return 0, nil
	}
	b, err := m.block(m.base.Parent.Alloc, int(blockBytes(0, len(text))), blockAlign)
	if err != nil {
		return 0, err
	}
	r, err := refTo(unsafe.Pointer(unsafe.SliceData(b)), 0, text)
	if err != nil {
		m.base.Parent.Free(b)
	}
	return r, err
}

// freeText returns the block of a text, unless that is empty.
func freeText(parent freehold.Allocator, r ref) {
	if size := textBytes(r); size > 0 {
		parent.Free(unsafe.Slice((*byte)(r.block()), size))
	}
}

// textBytes returns how many bytes of the parent some texts take.
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
		texts = append(texts, *(*ref)(unsafe.Add(slot, m.layout.value)))
	}
	return texts
}

// limbo has the texts that wait for readers.
//
// mu guards the open ones, and is held for a moment: all writers take it. sweeping guards
// batches, and is held while texts are freed.
type limbo struct {
	readers epoch.Domain
	freed   atomic.Uint64 // how often texts were freed
	bytes   atomic.Int64  // in open and batches

	mu        sync.Mutex
	open      []ref
	openBytes int

	sweeping sync.Mutex
	batches  []textBatch // oldest first
}

// textBatch is texts that are freed once the epoch has passed.
type textBatch struct {
	texts []ref
	epoch *epoch.Epoch
}

// A batch ends with so many texts or bytes, whichever comes first.
const (
	batchTexts = 64
	batchBytes = 64 << 10
)

// retire frees texts that are in no table any more, once their readers have left.
func (l *limbo) retire(parent freehold.Allocator, texts ...ref) {
	if l.add(texts) {
		l.reclaim(parent)
	}
}

// add adds texts to the open ones, and reports whether these are enough for a batch.
func (l *limbo) add(texts []ref) (full bool) {
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

// takeOpen returns the open texts, which are none then.
func (l *limbo) takeOpen() []ref {
	l.mu.Lock()
	defer l.mu.Unlock()
	texts := l.open
	l.open, l.openBytes = nil, 0
	return texts
}

// reclaim makes the open texts a batch, frees the batches whose readers have left, and returns
// freed.
func (l *limbo) reclaim(parent freehold.Allocator) uint64 {
	l.sweeping.Lock()
	defer l.sweeping.Unlock()
	if texts := l.takeOpen(); len(texts) > 0 {
		l.batches = append(l.batches, textBatch{texts, l.readers.Advance()})
	}
	for len(l.batches) > 0 && l.batches[0].epoch.Passed() {
		l.free(parent, l.batches[0].texts)
		l.batches = l.batches[1:]
	}
	return l.freed.Load()
}

// free frees texts. sweeping is held.
func (l *limbo) free(parent freehold.Allocator, texts []ref) {
	l.bytes.Add(-int64(textBytes(texts...)))
	for _, r := range texts {
		freeText(parent, r)
	}
	l.freed.Add(1)
}
