// Tags: a sampled block counts for its tag.
//
// A wrapper above the heap names the use of a block after the heap has allocated it. While
// sampling is on, it looks at the status of each block, which says whether it is sampled.
// Its record then moves to the bucket of the same stack with the tag.

package heap

import (
	"github.com/freehold-go/freehold/internal/stacks"
)

// Tag makes b, if it is a sampled block of a heap, count for the tag instead of the one
// that it had, or none. It is a no-op for any other slice, and if there is no room for
// the tag. While sampling is off it costs a load.
func Tag(b []byte, tag string) {
	if sampling.rate.Load() != 0 {
		tagSample(b, tag)
	}
}

// tagSample is Tag apart, so that Tag is inlined.
func tagSample(b []byte, tag string) {
	addr := addrOf(b)
	if s := spanAt(addr); s == nil || !s.isSampled(s.Owner, addr) {
		return
	}
	samples.mu.Lock()
	defer samples.mu.Unlock()
	r := recordOf(addr)
	if r == nil || r.userBytes() != uintptr(len(b)) {
		return
	}
	_, from := samples.stacks.Stack(r.bucket)
	to := labelNumber(label{samples.labels[from].heap, tag})
	id := samples.stacks.Relabel(r.bucket, to)
	if to == 0 || id == stacks.Other {
		return
	}
	objects, bytes := r.represents()
	was, is := &samples.buckets[r.bucket], &samples.buckets[id]
	was.allocObjects -= objects
	was.allocBytes -= bytes
	is.allocObjects += objects
	is.allocBytes += bytes
	r.bucket = id
}
