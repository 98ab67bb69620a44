// Profile: what the samples say about all blocks.

package heap

import (
	"slices"

	"github.com/freehold-go/freehold/internal/stacks"
)

// Usage estimates what one stack allocated and freed in one heap and for one tag since the
// start.
type Usage struct {
	Heap         string    // its name; "(other)" for the stacks and names that there was no room for
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
	buckets, labels := samplesSoFar()
	var all []Usage
	for id, b := range buckets {
		if b.allocObjects == 0 {
			continue
		}
		u := Usage{
			AllocObjects: inObjects(b.allocObjects),
			AllocBytes:   int64(b.allocBytes),
			FreeObjects:  inObjects(b.freeObjects),
			FreeBytes:    int64(b.freeBytes),
			CloseObjects: inObjects(b.closeObjects),
			CloseBytes:   int64(b.closeBytes),
		}
		pcs, n := samples.stacks.Stack(stacks.ID(id))
		u.Stack, u.Heap, u.Tag = pcs, labels[n].heap, labels[n].tag
		all = append(all, u)
	}
	return all
}

// samplesSoFar returns a copy of the buckets, and the labels.
func samplesSoFar() ([]bucket, []label) {
	samples.mu.Lock()
	defer samples.mu.Unlock()
	n := min(samples.stacks.Len()+1, len(samples.buckets))
	return slices.Clone(samples.buckets[:n]), samples.labels
}

func inObjects(units uint64) int64 { return int64((units + objectUnits/2) / objectUnits) }
