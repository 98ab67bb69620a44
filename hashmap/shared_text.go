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

// limbo has the texts that wait for readers. mu guards all but readers, and changes of freed.
type limbo struct {
	readers epoch.Domain
	freed   atomic.Uint64 // how often texts were freed

	mu      sync.Mutex
	open    []ref
	batches []textBatch // oldest first
	bytes   int         // in open and batches

	openBytes int
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
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range texts {
		if r != 0 {
			l.open = append(l.open, r)
		}
	}
	bytes := int(textBytes(texts...))
	l.bytes += bytes
	l.openBytes += bytes
	if len(l.open) >= batchTexts || l.openBytes >= batchBytes {
		l.endBatch()
	}
	l.sweep(parent)
}

// reclaim frees what it can at once, and returns freed.
func (l *limbo) reclaim(parent freehold.Allocator) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.open) > 0 {
		l.endBatch()
	}
	l.sweep(parent)
	return l.freed.Load()
}

// endBatch makes the open texts a batch. mu is held.
func (l *limbo) endBatch() {
	l.batches = append(l.batches, textBatch{l.open, l.readers.Advance()})
	l.open, l.openBytes = nil, 0
}

// sweep frees the batches whose readers have left. mu is held.
func (l *limbo) sweep(parent freehold.Allocator) {
	for len(l.batches) > 0 && l.batches[0].epoch.Passed() {
		l.free(parent, l.batches[0].texts)
		l.batches = l.batches[1:]
	}
}

// free frees texts. mu is held.
func (l *limbo) free(parent freehold.Allocator, texts []ref) {
	l.bytes -= int(textBytes(texts...))
	for _, r := range texts {
		freeText(parent, r)
	}
	l.freed.Add(1)
}

// close frees all texts. There are no readers.
func (l *limbo) close(parent freehold.Allocator) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range l.batches {
		l.free(parent, b.texts)
	}
	l.free(parent, l.open)
	l.batches, l.open, l.openBytes = nil, nil, 0
}
