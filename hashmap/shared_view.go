// Views of a Shared: strings and bytes that are read where they are.
//
// A text does not change, and a guard that was entered before the search keeps it. So what a
// reader has found is its own until it leaves, as if it had copied it.

package hashmap

import (
	"unsafe"

	"github.com/freehold-go/freehold/internal/arg"
)

// View calls fn with the value of k, if there is one, and reports whether there is. Strings and
// bytes are not copied: fn has the map's memory. They stay as they are until fn returns or
// panics, though other goroutines, or fn, replace or delete the value meanwhile. Values of other
// types are passed as Get returns them.
//
// fn must not write to the bytes, nor keep them: clone what must outlive the call. It runs
// without a lock, and may call any method of the map but Close.
//
// Until fn returns, no string, bytes or large value of the map that anyone replaces or deletes
// is freed. So let fn be short: at a limit of the parent, Puts fail meanwhile.
func (m *Shared[K, V]) View(k K, fn func(v V)) bool {
	m.mustBeOpen("View")
	if m.values == noText {
		v, ok := m.Get(k)
		if ok {
			fn(v)
		}
		return ok
	}
	guard := m.retired.readers.Enter()
	defer guard.Leave()
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

// AppendTo appends the value of k, if there is one, to dst, and reports whether there is. V is a
// string or []byte; AppendTo panics if it is not. Where dst has room, nothing is allocated.
func (m *Shared[K, V]) AppendTo(dst []byte, k K) ([]byte, bool) {
	m.mustBeOpen("AppendTo")
	if m.values != isString && m.values != isBytes {
		arg.Panicf("hashmap.Shared.AppendTo", "values are neither strings nor bytes: use Get")
	}
	guard := m.retired.readers.Enter()
	defer guard.Leave()
	text, ok := m.valueText(&k)
	return append(dst, text...), ok
}

// valueText returns the text of k's value, which stays until a guard leaves that was entered
// before the call.
func (m *Shared[K, V]) valueText(k *K) (text string, found bool) {
	h := hashOf(&m.hasher, k)
	load := func(slot unsafe.Pointer) { text = loadText(unsafe.Add(slot, m.layout.value)) }
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
