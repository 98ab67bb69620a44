package hashmap

import (
	"strings"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
)

// TestShardedTextIsOutOfReachBeforeItIsFreed: a reader that comes while a text is freed, or
// later, does not find it.
func TestShardedTextIsOutOfReachBeforeItIsFreed(t *testing.T) {
	const key = 7
	long := func(c string) string { return strings.Repeat(c, batchBytes) } // a batch of its own
	for name, call := range map[string]struct {
		do   func(m *Sharded[int, string])
		want string // "" is none
	}{
		"Put":    {func(m *Sharded[int, string]) { succeed(m.Put(key, long("b"))) }, long("b")},
		"Update": {func(m *Sharded[int, string]) { succeed(m.Update(key, func(v *string, _ bool) { *v = long("b") })) }, long("b")},
		"Delete": {func(m *Sharded[int, string]) { m.Delete(key) }, ""},
		"Clear":  {func(m *Sharded[int, string]) { m.Clear() }, ""},
	} {
		parent := &freeHook{Allocator: alloctest.New(t)}
		m := NewSharded[int, string](parent, nil)
		succeed(m.Put(key, long("a")))
		frees := 0
		parent.onFree = func(text []byte) {
			frees++
			clear(text)
			k := key
			// Get, but in race builds too, where that would wait for the writer.
			v, found, sure := m.getText(hashOf(&m.hasher, &k), &k)
			if !sure || v != call.want || found != (call.want != "") {
				t.Errorf("%s: a reader gets %.8q, %t, is sure: %t", name, v, found, sure)
			}
		}
		call.do(m)
		parent.onFree = nil
		if frees != 1 {
			t.Errorf("%s: %d texts were freed, want 1", name, frees)
		}
		m.Close()
	}
}

// freeHook calls onFree, if there is one, with what is freed.
type freeHook struct {
	freehold.Allocator
	onFree func(b []byte)
}

func (f *freeHook) Free(b []byte) {
	if f.onFree != nil {
		f.onFree(b)
	}
	f.Allocator.Free(b)
}
