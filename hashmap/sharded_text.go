// Text of a Sharded: strings and bytes, in blocks of the parent.
//
//	slot   | address of the key's text | ... |
//	text   | length, a word | bytes |
//
// The address of the empty text is 0. A text does not change. When its entry is deleted,
// or its value replaced, it is retired, and freed once the guards that were entered before have left. A
// reader enters a guard before it loads the directory's entry.
//
// So a reader may read a text before it has checked the version. A slot's words are
// stored before its tag, and stay when the tag is cleared. A slot whose tag a reader has
// seen therefore refers to texts that were live then or later, and those were
// retired, if at all, after the reader entered its guard.

package hashmap

import (
	"reflect"
	"strings"
	"sync"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/epoch"
)

// A textKind says which text a K or V is.
type textKind uint8

const (
	noText textKind = iota
	isString
	isBytes // of values only
)

func textKindOf(t reflect.Type) textKind {
	switch {
	case t.Kind() == reflect.String:
		return isString
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return isBytes
	}
	return noText
}

// textOf returns the bytes of v, which is a string or []byte.
func textOf[T any](kind textKind, v *T) string {
	if kind == isBytes {
		b := *(*[]byte)(unsafe.Pointer(v))
		return unsafe.String(unsafe.SliceData(b), len(b))
	}
	return *(*string)(unsafe.Pointer(v))
}

// copyOf returns a T with a copy of text.
func copyOf[T any](kind textKind, text string) (v T) {
	if kind == isBytes {
		*(*[]byte)(unsafe.Pointer(&v)) = []byte(text)
	} else {
		*(*string)(unsafe.Pointer(&v)) = strings.Clone(text)
	}
	return v
}

// textAt returns the text at an address of newText.
func textAt(addr uintptr) string {
	if addr == 0 {
		return ""
	}
	n := *(*uintptr)(pointer(addr))
	return unsafe.String((*byte)(pointer(addr+wordBytes)), int(n))
}

// newText returns the address of a copy of text.
func (m *shardedTables) newText(text string) (uintptr, error) {
	if text == "" {
		return 0, nil
	}
	b, err := m.block(m.parent.Alloc, int(wordBytes)+len(text), wordBytes)
	if err != nil {
		return 0, err
	}
	*(*uintptr)(unsafe.Pointer(unsafe.SliceData(b))) = uintptr(len(text))
	copy(b[wordBytes:], text)
	return uintptr(unsafe.Pointer(unsafe.SliceData(b))), nil
}

func freeText(parent freehold.Allocator, addr uintptr) {
	parent.Free(unsafe.Slice((*byte)(pointer(addr)), int(textBytes(addr))))
}

// textBytes returns how many bytes of the parent some texts take.
func textBytes(texts ...uintptr) (bytes uintptr) {
	for _, addr := range texts {
		if addr != 0 {
			bytes += wordBytes + uintptr(len(textAt(addr)))
		}
	}
	return bytes
}

// appendTexts appends the texts of a slot, in a locked table.
func (m *Sharded[K, V]) appendTexts(texts []uintptr, slot unsafe.Pointer) []uintptr {
	if m.keys != noText {
		texts = append(texts, *(*uintptr)(slot))
	}
	if m.values != noText {
		texts = append(texts, *(*uintptr)(unsafe.Add(slot, m.layout.value)))
	}
	return texts
}

// writeText is write for maps with text.
func (m *Sharded[K, V]) writeText(x held, h uint64, g unsafe.Pointer, i uintptr, k *K, v *V) (err error) {
	var key, value uintptr
	if m.values != noText {
		if value, err = m.newText(textOf(m.values, v)); err != nil {
			return err
		}
	}
	if g != nil {
		slot := m.slot(g, i)
		if m.values == noText {
			setValue(m, g, slot, v)
			return nil
		}
		p := (*uintptr)(unsafe.Add(slot, m.layout.value))
		old := *p
		storeWord(p, value)
		hd := headOf(x.e)
		storeWord(&hd.text, hd.text+textBytes(value)-textBytes(old))
		m.limbo.retire(m.parent, old)
		return nil
	}
	if m.keys != noText {
		if key, err = m.newText(textOf(m.keys, k)); err != nil {
			if value != 0 {
				freeText(m.parent, value)
			}
			return err
		}
	}
	g, i = m.place(x.e, h)
	slot := m.slot(g, i)
	raise(g) // W1
	m.seam.at(raised)
	if m.keys != noText { // W2
		storeWord((*uintptr)(slot), key)
	} else {
		storeCell(slot, k)
	}
	m.seam.at(wroteKey)
	if p := unsafe.Add(slot, m.layout.value); m.values != noText {
		storeWord((*uintptr)(p), value)
	} else {
		storeCell(p, v)
	}
	m.seam.at(wroteValue)
	fill(x.e, g, i, h, textBytes(key, value))
	return nil
}

// limbo has the texts that wait for readers. mu guards all but readers.
type limbo struct {
	readers epoch.Domain

	mu      sync.Mutex
	open    []uintptr
	batches []textBatch // oldest first
	bytes   int         // in open and batches

	openBytes int
}

// textBatch is texts that are freed once the epoch has passed.
type textBatch struct {
	texts []uintptr
	epoch *epoch.Epoch
}

// A batch ends with so many texts or bytes, whichever comes first.
const (
	batchTexts = 64
	batchBytes = 64 << 10
)

// retire frees texts that are in no table any more, once their readers have left.
func (l *limbo) retire(parent freehold.Allocator, texts ...uintptr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, addr := range texts {
		if addr != 0 {
			l.open = append(l.open, addr)
			l.bytes += int(textBytes(addr))
		}
	}
	l.openBytes += int(textBytes(texts...))
	if len(l.open) >= batchTexts || l.openBytes >= batchBytes {
		l.endBatch()
	}
	l.sweep(parent)
}

// reclaim frees what it can at once, and reports whether that is anything. A call that
// has met the end of memory then tries again.
func (l *limbo) reclaim(parent freehold.Allocator) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.bytes
	if len(l.open) > 0 {
		l.endBatch()
	}
	l.sweep(parent)
	return l.bytes < before
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
func (l *limbo) free(parent freehold.Allocator, texts []uintptr) {
	for _, addr := range texts {
		l.bytes -= int(textBytes(addr))
		freeText(parent, addr)
	}
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
