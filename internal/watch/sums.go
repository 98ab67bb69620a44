// Sums: the blocks and bytes that the samples represent.
//
//	sums     stack, heap and tag -> blocks and bytes so far, allocated and freed
//	labels   heap and tag
//
// There is a sum for each stack with a label that package stacks keeps.
//
// A wrapper above the heap gives a block a tag, which names its use, after the heap has allocated
// it. The record then moves to the sum of the same stack with the tag.

package watch

import (
	"slices"

	"github.com/freehold-go/freehold/internal/stacks"
)

// sum has the blocks that the samples of a stack represent. It is off-heap.
type sum struct {
	allocObjects, allocBytes, freeObjects, freeBytes uint64
	closeObjects, closeBytes                         uint64 // by Close of a heap; part of free
}

const (
	// Objects are counted in 1/objectUnits, since a sample represents 1 and a fraction, or more.
	objectUnits = 1 << 10

	maxLabels = 1 << 12
)

// label names the heap and the tag of the blocks in a sum.
type label struct{ heap, tag string }

// noLabel is label 0.
var noLabel = label{heap: "(other)"}

// makeSums reports false if there is no memory for the sums. mu is held.
func makeSums() bool {
	table.sums = array[sum](stacks.Max)
	return table.sums != nil
}

// begin counts r's block as allocated. mu is held, as it is for end.
func (r *record) begin() {
	objects, bytes := r.represents()
	table.sums[r.alloc].allocObjects += objects
	table.sums[r.alloc].allocBytes += bytes
}

// end counts r's block as freed. From then on it represents none.
func (r *record) end() {
	objects, bytes := r.represents()
	s := &table.sums[r.alloc]
	s.freeObjects += objects
	s.freeBytes += bytes
	r.weight = 0
}

// endByClose is end by Close of the heap.
func (r *record) endByClose() {
	objects, bytes := r.represents()
	s := &table.sums[r.alloc]
	s.closeObjects += objects
	s.closeBytes += bytes
	r.end()
}

// represents returns the blocks, in objectUnits, and the bytes that r represents. Both are below
// 1<<63, and amd64 has an instruction for the conversion to int64 alone.
func (r *record) represents() (objects, bytes uint64) {
	return uint64(int64(r.weight*objectUnits + 0.5)), uint64(int64(r.weight*float64(r.size) + 0.5))
}

// labelled returns the label of h's stacks.
func (h *Heap) labelled() uint32 {
	if label := h.label.Load(); label != 0 {
		return label
	}
	table.mu.Lock()
	defer table.mu.Unlock()
	n := labelNumber(label{heap: h.pages.Name})
	h.label.Store(n)
	return n
}

// labelNumber returns the number of a label, or of noLabel if there are too many. mu is held.
func labelNumber(l label) uint32 {
	if table.labelOf == nil {
		table.labels, table.labelOf = []label{noLabel}, map[label]uint32{}
	}
	n, found := table.labelOf[l]
	if !found && len(table.labels) < maxLabels {
		n = uint32(len(table.labels))
		table.labels = append(table.labels, l)
		table.labelOf[l] = n
	}
	return n
}

// Tag makes the sampled block b count for the tag in place of an earlier one or none. It is a no-op
// for any other slice, and if there is no room for the tag.
func Tag(b []byte, tag string) {
	table.mu.Lock()
	defer table.mu.Unlock()
	r := find(addrOf(b))
	if r == nil || r.weight == 0 || r.size != uintptr(len(b)) {
		return
	}
	_, from := table.stacks.Stack(r.alloc)
	to := labelNumber(label{table.labels[from].heap, tag})
	id := table.stacks.Relabel(r.alloc, to)
	if to == 0 || id == stacks.Other {
		return
	}
	objects, bytes := r.represents()
	table.sums[r.alloc].allocObjects -= objects
	table.sums[r.alloc].allocBytes -= bytes
	r.alloc = id
	r.begin()
}

// Usage estimates what one stack allocated and freed in one heap and for one tag since the
// start.
type Usage struct {
	Heap         string    // its name; "(other)" if there was no room for the stack or name
	Tag          string    // "" for none
	Stack        []uintptr // as from runtime.Callers, with this module's frames; not to be changed
	AllocObjects int64
	AllocBytes   int64
	FreeObjects  int64
	FreeBytes    int64
	CloseObjects int64 // by Close of the heap; part of FreeObjects
	CloseBytes   int64
}

// Profile returns the usage of each stack with a sample.
func Profile() []Usage {
	sums, labels := sumsSoFar()
	var all []Usage
	for id, s := range sums {
		if s.allocObjects == 0 {
			continue
		}
		u := Usage{
			AllocObjects: inObjects(s.allocObjects),
			AllocBytes:   int64(s.allocBytes),
			FreeObjects:  inObjects(s.freeObjects),
			FreeBytes:    int64(s.freeBytes),
			CloseObjects: inObjects(s.closeObjects),
			CloseBytes:   int64(s.closeBytes),
		}
		pcs, n := table.stacks.Stack(stacks.ID(id))
		u.Stack, u.Heap, u.Tag = pcs, labels[n].heap, labels[n].tag
		all = append(all, u)
	}
	return all
}

// sumsSoFar returns a copy of the sums, and the labels.
func sumsSoFar() ([]sum, []label) {
	table.mu.Lock()
	defer table.mu.Unlock()
	n := min(table.stacks.Len()+1, len(table.sums))
	return slices.Clone(table.sums[:n]), table.labels
}

func inObjects(units uint64) int64 { return int64((units + objectUnits/2) / objectUnits) }
