// Load: bulk loading of sorted entries at the end of the tree.

package btree

import (
	"errors"
	"fmt"
	"iter"

	"github.com/freehold-go/freehold/internal/arg"
)

// ErrUnsorted matches the error of [Map.Load] for keys that do not ascend.
var ErrUnsorted = errors.New("freehold: btree: keys do not ascend")

// Load appends entries whose keys ascend: each key must be greater than the one before and than
// all keys of the map. It takes a fraction of the time of Put and fills the nodes. Use it to build
// a map from sorted data.
//
// The error matches [ErrUnsorted] and gives the number of the entry, counted from 0, or it matches
// [freehold.ErrOutOfMemory]. After an error, or if entries panics, the map is as before the call.
// entries may read the map; a call in it that changes the map panics.
func (m *Map[K, V]) Load(entries iter.Seq2[K, V]) (err error) {
	m.mustBeWritable("Load")
	if entries == nil {
		arg.Panicf("btree.Map.Load", "entries is nil")
	}
	before, done := m.length, false
	m.base.Lend()
	defer func() {
		m.base.Back()
		if !done {
			m.truncate(before)
		}
	}()
	n := m.last()
	for k, v := range entries {
		i := 0
		if n != nil {
			i = n.count()
			if c := m.compare(m.key(n, i-1), k); c >= 0 {
				return fmt.Errorf("%w: entry %d of those to load has a key not greater than that before", ErrUnsorted, m.length-before)
			}
		}
		if n, i, err = m.insert(n, i, k); err != nil {
			return err
		}
		*m.value(n, i) = v
	}
	done = true
	return nil
}

// truncate deletes all but the first length entries.
func (m *Map[K, V]) truncate(length int) {
	for m.length > length {
		var p path
		n := m.root
		for level := m.height - 1; level > 0; level-- {
			p[level] = step{n, n.count()}
			n = m.child(n, n.count())
		}
		p[0] = step{n, max(n.count()-(m.length-length), 0)}
		_ = m.remove(&p, n.count()) // its nodes are the map's own
	}
}
