// Tree: a map from numbers to numbers, in order.

package z

import (
	"fmt"
	"math"

	"github.com/freehold-go/freehold/btree"
)

// Tree maps keys of 1 to 2^64-2 to values. A value of 0 means no entry. It is a [btree.Map], and
// not safe for concurrent use. Set panics if memory runs out.
type Tree struct {
	m    *btree.Map[uint64, uint64]
	file treeFile
}

// NewTree returns an empty tree. The tag names it in profiles. Close frees it.
func NewTree(tag string) *Tree {
	return &Tree{m: btree.New[uint64, uint64](blocks(), &btree.Options{Name: tag})}
}

func mustBeKey(call string, k uint64) {
	if k == 0 || k == math.MaxUint64 {
		panic(fmt.Sprintf("freehold: z.Tree.%s: key %d, want 1 to %d", call, k, uint64(math.MaxUint64-1)))
	}
}

// Set sets the value of a key.
func (t *Tree) Set(k, v uint64) {
	mustBeKey("Set", k)
	t.room()
	t.log(k, v)
	if err := t.m.Put(k, v); err != nil {
		t.file.unlog()
		panic(err)
	}
	t.commit()
}

// Get returns the value of a key, or 0 if it has none.
func (t *Tree) Get(k uint64) uint64 {
	mustBeKey("Get", k)
	v, _ := t.m.Get(k)
	return v
}

// DeleteBelow deletes all entries with values less than ts.
func (t *Tree) DeleteBelow(ts uint64) {
	t.room()
	t.log(0, ts)
	t.deleteBelow(ts)
	t.commit()
}

func (t *Tree) deleteBelow(ts uint64) {
	t.m.DeleteFunc(func(_ uint64, v *uint64) bool { return *v < ts })
}

// IterateKV calls f with each entry in the order of keys. If f returns a value other than 0, the
// entry gets that value. f must not change the tree.
func (t *Tree) IterateKV(f func(key, val uint64) (newVal uint64)) {
	t.room()
	defer t.commit()
	t.m.DeleteFunc(func(k uint64, v *uint64) bool {
		if *v != 0 {
			if changed := f(k, *v); changed != 0 {
				t.log(k, changed)
				*v = changed
			}
		}
		return false
	})
}

// Reset deletes all entries. It waits for the disk if the tree is persistent.
func (t *Tree) Reset() {
	t.m.Clear()
	t.file.reset()
}

// Print prints the tree's figures.
func (t *Tree) Print() { fmt.Printf("%+v\n", t.m.Stats()) }

// TreeStats has figures of a tree. A page is a node.
type TreeStats struct {
	Allocated    int     // bytes of memory
	Bytes        int     // of pages in use
	NumLeafKeys  int     // entries
	NumPages     int     // in use
	NumPagesFree int     // always 0: a page without entries is freed
	Occupancy    float64 // of leaves, in percent
	PageSize     int     // in bytes, on average
}

// Stats returns the tree's figures.
func (t *Tree) Stats() TreeStats {
	st := t.m.Stats()
	pages := st.Leaves + st.Inner
	return TreeStats{
		Allocated:   st.Reserved,
		Bytes:       st.Reserved,
		NumLeafKeys: st.Len,
		NumPages:    pages,
		Occupancy:   100 * float64(st.Len) / float64(max(st.Slots, 1)),
		PageSize:    st.Reserved / max(pages, 1),
	}
}

// Close closes the file of a persistent tree and frees the memory. The error is from the file.
func (t *Tree) Close() error {
	if t == nil {
		return nil
	}
	defer t.m.Close()
	return t.file.close(t.m)
}
