package heap

import (
	"fmt"
	"github.com/freehold-go/freehold/internal/pages"
	"testing"
)

// byTag returns what the samples say about the heap of a name, by tag.
func byTag(name string) map[string]Usage {
	all := map[string]Usage{}
	for _, p := range Profile() {
		if p.Heap == name {
			u := all[p.Tag]
			u.AllocObjects += p.AllocObjects
			u.AllocBytes += p.AllocBytes
			u.FreeObjects += p.FreeObjects
			u.FreeBytes += p.FreeBytes
			all[p.Tag] = u
		}
	}
	return all
}

// A sampled block counts for its tag alone, the last that it was given, on any path.
func TestTag(t *testing.T) {
	sampleAt(t, 1)
	for _, size := range []int{64, 5000, 100000} {
		name := fmt.Sprint(nameOf(t), size)
		h := newHeap(t, Options{Name: name})
		var blocks [][]byte
		for range 100 {
			b := alloc(t, h, size)
			Tag(b, "a")
			Tag(b, "a/b")
			Tag(b, "a/b")
			blocks = append(blocks, b)
		}
		untagged := alloc(t, h, size)
		Tag(untagged[:size-1], "part")
		Tag(untagged[1:], "inside")
		if size > pages.PageBytes {
			Tag(untagged[pages.PageBytes:], "inside")
		}
		Tag(nil, "nil")
		Tag([]byte{}, "empty")
		Tag(make([]byte, size), "Go memory")
		for _, b := range blocks[:40] {
			h.Free(b)
		}
		n := int64(size)
		want := map[string]Usage{"a/b": {AllocObjects: 100, AllocBytes: 100 * n, FreeObjects: 40, FreeBytes: 40 * n}, "": {AllocObjects: 1, AllocBytes: n}}
		if got := byTag(name); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("size %d: %+v, want %+v", size, got, want)
		}
		h.check(t)
		for _, b := range blocks[40:] {
			h.Free(b)
		}
	}
}

// At other rates the tag has what the samples represent, and nothing is left elsewhere.
func TestTagOfSamples(t *testing.T) {
	sampleAt(t, 4096)
	h := newHeap(t, Options{Name: nameOf(t)})
	o := newLocalCache(h)
	defer o.Close()
	var blocks [][]byte
	for range 20000 {
		b, err := o.Alloc(1000, 8, false)
		if err != nil {
			t.Fatal(err)
		}
		Tag(b, "tag")
		blocks = append(blocks, b)
	}
	all := byTag(nameOf(t))
	if u := all["tag"]; len(all) != 1 || u.AllocObjects < 17000 || u.AllocObjects > 23000 || u.AllocBytes < 17e6 || u.AllocBytes > 23e6 {
		t.Errorf("%+v, want 20000 blocks of one tag", all)
	}
	for _, b := range blocks {
		o.Free(b)
	}
	if u := byTag(nameOf(t))["tag"]; u.FreeObjects != u.AllocObjects || u.FreeBytes != u.AllocBytes {
		t.Errorf("all is free, and the samples say %+v", u)
	}
}

// Where there is no room for a tag, a block keeps what it has. While sampling is off,
// Tag does nothing.
func TestNoRoomForATag(t *testing.T) {
	sampleAt(t, 1)
	h := newHeap(t, Options{Name: nameOf(t)})
	b := alloc(t, h, 50)
	Tag(b, "first")
	samples.mu.Lock()
	labels := samples.labels
	samples.labels = make([]label, maxLabels)
	copy(samples.labels, labels)
	samples.mu.Unlock()
	Tag(b, "late")
	samples.mu.Lock()
	samples.labels = labels
	samples.mu.Unlock()
	SetSampleRate(0)
	Tag(b, "off")
	if all := byTag(nameOf(t)); len(all) != 1 || all["first"].AllocObjects != 1 {
		t.Errorf("%+v", all)
	}
}

// A block in place of a tagged one has no tag before it is given one.
func TestTagAfterResize(t *testing.T) {
	sampleAt(t, 1)
	h := newHeap(t, Options{Name: nameOf(t)})
	b := alloc(t, h, 100)
	Tag(b, "tag")
	if _, ok := h.Resize(b, 5000); ok {
		t.Fatal("resized in place")
	}
	if u := byTag(nameOf(t))["tag"]; u.AllocObjects != 1 || u.FreeObjects != 0 {
		t.Errorf("after a Resize that failed: %+v", u)
	}
	r, _ := h.Resize(b, 112)
	if all := byTag(nameOf(t)); all["tag"].FreeObjects != 1 || all[""].AllocBytes != 112 {
		t.Errorf("%+v", all)
	}
	Tag(r, "tag")
	if all := byTag(nameOf(t)); len(all) != 1 || all["tag"].AllocBytes != 212 || all["tag"].FreeBytes != 100 {
		t.Errorf("%+v", all)
	}
}
