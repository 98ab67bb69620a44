// Views of a Shared: strings and bytes that are read in place.
//
// A text never changes, and a guard entered before the search keeps it. So a reader may use the
// text until it leaves, as if it had a copy.

package hashmap

import (
	"unsafe"

	"github.com/freehold-go/freehold/internal/arg"
)

// View calls fn with the value of k if the map has k, and reports whether it has. fn gets a string
// or []byte without a copy: it is the map's memory, which stays unchanged until fn returns or
// panics, even if fn or another goroutine replaces or deletes the value. Values of other types are
// copies.
//
// fn must not write to the bytes, nor keep them: clone bytes that must outlive the call. fn runs
// without a lock, and may call any method of the map except Close.
//
// While fn runs, the map frees no replaced or deleted string, bytes or large value. So keep fn
// short: if the parent is at its limit, Puts fail meanwhile.
func (m *Shared[K, V]) View(k K, fn func(v V)) bool {
	m.base.MustBeOpen(&sharedKind, "View")
	if m.values == noText {
		v, ok := m.Get(k)
		if ok {
			fn(v)
		}
		return ok
	}
	guard := m.retired.readers.Enter()
	defer m.left(guard)
	text, ok := m.valueText(&k)
	switch {
	case !ok:
	case m.values == isLarge:
		fn(copyOf[V](isLarge, text))
	default:
		fn(viewOf[V](m.values, text))
	}
	return ok
}

// AppendTo appends the value of k to dst if the map has k, and reports whether it has. It allocates
// nothing if dst has room. It panics unless V is string or []byte.
func (m *Shared[K, V]) AppendTo(dst []byte, k K) ([]byte, bool) {
	m.base.MustBeOpen(&sharedKind, "AppendTo")
	if m.values != isString && m.values != isBytes {
		arg.Panicf("hashmap.Shared.AppendTo", "values are neither strings nor bytes: use Get")
	}
	guard := m.retired.readers.Enter()
	defer m.left(guard)
	text, ok := m.valueText(&k)
	return append(dst, text...), ok
}

// valueText returns the text of k's value. It is valid under a guard that was entered before the
// call.
func (m *Shared[K, V]) valueText(k *K) (text string, found bool) {
	h := hashOf(&m.hash, k)
	load := func(slot unsafe.Pointer) { text = loadText(m.valueIn(slot)) }
	if !readersLock {
		s, sure := m.look(h, k)
		if s.slot != nil {
			load(s.slot)
			m.seam.At(readValue)
			sure = s.same()
		}
		if sure {
			return text, s.slot != nil
		}
		text = ""
	}
	found = m.locked(h, k, load)
	return text, found
}
