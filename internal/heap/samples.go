// Samples: the records of the sampled blocks.
//
//	live block -- status, or flag of its span: sampled
//	    |
//	chains     address -> record: size, rate, bucket     of live blocks
//	buckets    stack, heap and tag -> blocks and bytes so far, allocated and freed
//
// The status of a sampled block is neither a size nor that of a free block. So the fast
// path of Free fails, and the slow path finds the record: Free costs nothing for the
// other blocks. The record has the size that the status would have. A slow path removes
// the record first, if the slice is exactly the block, which makes the block an ordinary
// one. What follows is as for any other, and detects the same mistakes.
//
// Resize counts as a Free and an Alloc, in place too, so the counts do not depend on what
// is behind a block.
//
// Records, chains and buckets are blocks of a heap of their own, which is not sampled.
// There is a record for each live sample, and a bucket for each stack, as many as package
// stacks keeps. Without memory for a record, the block is not sampled.

package heap

import (
	"math"
	"sync"
	"unsafe"

	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/pin"
	"github.com/freehold-go/freehold/internal/stacks"
	"github.com/freehold-go/freehold/internal/vm"
)

// record is a live block that is sampled. It is off-heap.
type record struct {
	next   uintptr // in its chain
	after  uintptr // neighbours among the heap's records
	before uintptr
	addr   uintptr
	size   uintptr
	bucket stacks.ID
	red    uint32  // bytes of size that are the red zone
	weight float64 // how many blocks it represents
}

// bucket is what the samples of a stack represent. It is off-heap.
type bucket struct {
	allocObjects, allocBytes, freeObjects, freeBytes uint64
	closeObjects, closeBytes                         uint64 // those that Close of a heap freed; part of free
}

const (
	recordBytes = int(unsafe.Sizeof(record{}))
	bucketBytes = int(unsafe.Sizeof(bucket{}))

	// Objects are counted in 1/objectUnits: a sample represents 1 and a fraction, or more.
	objectUnits = 1 << 10

	minChains = 1 << 9
	maxLabels = 1 << 12
)

// label says whose blocks a bucket counts.
type label struct{ heap, tag string }

var noLabel = label{heap: "(other)"}

// samples has the records and the buckets. mu guards all of it but stacks. The only locks
// taken under mu are those of heap.
var samples struct {
	stacks stacks.Table

	mu      sync.Mutex
	heap    *Heap
	chains  []uintptr // a power of two of them, by hash of the address
	records int
	buckets []bucket // by ID
	labels  []label  // label 0 is noLabel
	labelOf map[label]uint32
}

// sample samples b, a block that was just allocated.
func (h *Heap) sample(b []byte) {
	if h.unsampled {
		return
	}
	label := h.sampleLabel()
	id := samples.stacks.Capture(label)
	s := spanAt(addrOf(b))
	samples.mu.Lock()
	defer samples.mu.Unlock()
	if r := newRecord(); r != nil {
		r.addr, r.size = addrOf(b), uintptr(len(b))
		r.red = uint32(r.size - s.userBytes(r.size))
		r.bucket, r.weight = id, weight(r.userBytes())
		objects, bytes := r.represents()
		samples.buckets[id].allocObjects += objects
		samples.buckets[id].allocBytes += bytes
		h.link(r)
		s.mark(r)
	}
}

// sampleLabel returns the label of h's stacks.
func (h *Heap) sampleLabel() uint32 {
	if label := h.label.Load(); label != 0 {
		return label
	}
	samples.mu.Lock()
	defer samples.mu.Unlock()
	n := labelNumber(label{heap: h.pages.Name})
	h.label.Store(n)
	return n
}

// labelNumber returns the number of a label, that of noLabel if there are too many. mu is
// held.
func labelNumber(l label) uint32 {
	if samples.labelOf == nil {
		samples.labels, samples.labelOf = []label{noLabel}, map[label]uint32{}
	}
	n, found := samples.labelOf[l]
	if !found && len(samples.labels) < maxLabels {
		n = uint32(len(samples.labels))
		samples.labels = append(samples.labels, l)
		samples.labelOf[l] = n
	}
	return n
}

// isSampled reports whether a sampled block begins at addr. Its record has the size.
func (s *span) isSampled(owner uint32, addr uintptr) bool {
	switch {
	case s == nil || s.Owner != owner:
		return false
	case s.Kind == pages.LargeRun:
		return s.Base == addr && s.sampled
	case s.Kind == pages.GuardRun:
		return s.block == addr && s.sampled
	case s.Kind == pages.BlockRun:
		i := s.index(addr)
		return s.Base+i*s.Size == addr && *statusAt(s.statusOf(i)) == sampled
	}
	return false
}

// sampledSize returns the size of the sampled block at addr, or 0.
func (h *Heap) sampledSize(s *span, addr uintptr) uintptr {
	if h.records.Load() == 0 || !s.isSampled(h.pages.ID, addr) {
		return 0
	}
	samples.mu.Lock()
	defer samples.mu.Unlock()
	if r := recordOf(addr); r != nil {
		return r.size
	}
	return 0
}

// freeSample makes b an ordinary block if it is exactly a sampled one, and counts it as
// freed.
func (h *Heap) freeSample(s *span, b []byte) {
	if h.records.Load() != 0 {
		h.freeSampled(s, b)
	}
}

// freeSampled is freeSample apart, so that freeSample is inlined.
func (h *Heap) freeSampled(s *span, b []byte) {
	if !s.isSampled(h.pages.ID, addrOf(b)) {
		return
	}
	samples.mu.Lock()
	defer samples.mu.Unlock()
	if r := h.unsample(s, b); r != nil {
		r.end()
	}
}

// takeSample makes b an ordinary block if it is exactly a sampled one, and returns its
// record. The caller passes it to endSample, or to keepSample if the block stays.
func (h *Heap) takeSample(s *span, b []byte) *record {
	if h.records.Load() == 0 || !s.isSampled(h.pages.ID, addrOf(b)) {
		return nil
	}
	samples.mu.Lock()
	defer samples.mu.Unlock()
	return h.unsample(s, b)
}

// unsample is takeSample with mu held.
func (h *Heap) unsample(s *span, b []byte) *record {
	addr := addrOf(b)
	r := recordOf(addr)
	if r == nil || r.size != uintptr(len(b)) {
		return nil
	}
	h.unlink(r)
	s.unmark(r)
	return r
}

// keepSample undoes takeSample.
func (h *Heap) keepSample(s *span, r *record) {
	samples.mu.Lock()
	defer samples.mu.Unlock()
	h.link(r)
	s.mark(r)
}

// endSample counts a block as freed, and frees its record.
func endSample(r *record) {
	samples.mu.Lock()
	defer samples.mu.Unlock()
	r.end()
}

// endSamples is endSample for all blocks of a heap that is closed.
func (h *Heap) endSamples() {
	samples.mu.Lock()
	defer samples.mu.Unlock()
	for at := h.records.Load(); at != 0; at = h.records.Load() {
		r := recordAt(at)
		h.unlink(r)
		b := &samples.buckets[r.bucket]
		objects, bytes := r.end()
		b.closeObjects += objects
		b.closeBytes += bytes
	}
}

// end is endSample with mu held. It returns what r represented.
func (r *record) end() (objects, bytes uint64) {
	objects, bytes = r.represents()
	samples.buckets[r.bucket].freeObjects += objects
	samples.buckets[r.bucket].freeBytes += bytes
	samples.heap.Free(unsafe.Slice((*byte)(unsafe.Pointer(r)), recordBytes))
	return objects, bytes
}

// weight returns how many blocks of size bytes a sampled one represents: the inverse of
// the probability that it is sampled.
func weight(size uintptr) float64 {
	if rate := sampling.rate.Load(); rate > 1 {
		return -1 / math.Expm1(-float64(size)/float64(rate))
	}
	return 1
}

// represents returns how many blocks, in objectUnits, and how many bytes r represents.
func (r *record) represents() (objects, bytes uint64) {
	return uint64(r.weight*objectUnits + 0.5), uint64(r.weight*float64(r.userBytes()) + 0.5)
}

// mark notes that the block of r, in the span s, is sampled.
func (s *span) mark(r *record) {
	if s.Kind == pages.BlockRun {
		*statusAt(s.statusOf(s.index(r.addr))) = sampled
	} else {
		s.sampled = true
	}
}

// unmark undoes mark. The block must still be live.
func (s *span) unmark(r *record) {
	if s.Kind == pages.BlockRun {
		*statusAt(s.statusOf(s.index(r.addr))) = uint16(r.size)
	} else {
		s.sampled = false
	}
}

func recordAt(addr uintptr) *record  { return (*record)(vm.Pointer(addr)) }
func (r *record) self() uintptr      { return uintptr(unsafe.Pointer(r)) }
func (r *record) userBytes() uintptr { return r.size - uintptr(r.red) }

// chainOf returns the chain of the record of the block at addr. mu is held.
func chainOf(addr uintptr) *uintptr {
	return &samples.chains[int(uint64(addr)*0x9e3779b97f4a7c15>>32)&(len(samples.chains)-1)]
}

// recordOf returns the record of the block at addr, or nil. mu is held.
func recordOf(addr uintptr) *record {
	if len(samples.chains) == 0 {
		return nil
	}
	for at := *chainOf(addr); at != 0; at = recordAt(at).next {
		if r := recordAt(at); r.addr == addr {
			return r
		}
	}
	return nil
}

// link adds r to its chain and to the records of h. mu is held.
func (h *Heap) link(r *record) {
	chain := chainOf(r.addr)
	r.next, *chain = *chain, r.self()
	r.before, r.after = 0, h.records.Load()
	if r.after != 0 {
		recordAt(r.after).before = r.self()
	}
	h.records.Store(r.self())
	samples.records++
}

// unlink undoes link. mu is held.
func (h *Heap) unlink(r *record) {
	at := chainOf(r.addr)
	for *at != r.self() {
		at = &recordAt(*at).next
	}
	*at = r.next
	if r.after != 0 {
		recordAt(r.after).before = r.before
	}
	if r.before != 0 {
		recordAt(r.before).after = r.after
	} else {
		h.records.Store(r.after)
	}
	samples.records--
}

// newRecord returns a record, or nil if there is no memory. mu is held.
func newRecord() *record {
	if samples.heap == nil {
		samples.heap = pin.New[Heap]()
		samples.heap.Init(Options{Name: "samples", Unsampled: true})
	}
	if samples.buckets == nil {
		b, err := samples.heap.Alloc(stacks.Max*bucketBytes, 8, true)
		if err != nil {
			return nil
		}
		samples.buckets = unsafe.Slice((*bucket)(unsafe.Pointer(&b[0])), stacks.Max)
	}
	if samples.records >= len(samples.chains) && !growChains() {
		return nil
	}
	b, err := samples.heap.Alloc(recordBytes, 8, false)
	if err != nil {
		return nil
	}
	return (*record)(unsafe.Pointer(&b[0]))
}

// growChains doubles the chains. Without memory for more, it keeps those that there are.
// It reports false if there are none. mu is held.
func growChains() bool {
	old := samples.chains
	n := max(2*len(old), minChains)
	b, err := samples.heap.Alloc(n*int(pages.WordBytes), 8, true)
	if err != nil {
		return len(old) > 0
	}
	samples.chains = unsafe.Slice((*uintptr)(unsafe.Pointer(&b[0])), n)
	for _, at := range old {
		for at != 0 {
			r := recordAt(at)
			at = r.next
			chain := chainOf(r.addr)
			r.next, *chain = *chain, r.self()
		}
	}
	if len(old) > 0 {
		samples.heap.Free(unsafe.Slice((*byte)(unsafe.Pointer(&old[0])), len(old)*int(pages.WordBytes)))
	}
	return true
}
