package subject

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/freehold-go/freehold/cmalloc"
	"github.com/freehold-go/freehold/lab/run"
)

// An allocator's figures are its own: under each name is the malloc of that name,
// or an error that says what is there instead.
func TestAllocatorsOfCAreHonest(t *testing.T) {
	is, _ := cmalloc.Implementation()
	for name, wants := range map[string]string{"libc": "glibc libc", "jemalloc": "jemalloc"} {
		a, err := openC(name, 0)
		honest := is != "" && strings.Contains(" "+wants+" ", " "+is+" ")
		if honest != (err == nil) {
			t.Errorf("%s on %q: %v", name, is, err)
		}
		if err != nil {
			if !errors.As(err, new(run.UnavailableError)) || !strings.HasPrefix(err.Error(), name+": ") {
				t.Errorf("%s on %q: the error is %v", name, is, err)
			}
			continue
		}
		b, err := a.Alloc(100)
		if err != nil || len(b) != 100 {
			t.Errorf("%s: %d bytes, %v", name, len(b), err)
		}
		a.Free(b)
		a.Close()
	}
}

func TestLists(t *testing.T) {
	const n = 10_000
	for _, k := range Lists {
		l, err := k.Open()
		if errors.As(err, new(run.UnavailableError)) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		before := l.OffHeap()
		if err := l.Build(n); err != nil {
			t.Fatal(err)
		}
		if sum := l.Walk(); sum != n*(n-1)/2 {
			t.Errorf("%s: the keys add up to %d", k.Name, sum)
		}
		if off := l.OffHeap(); k.Name == "go" && off != -1 || k.Name != "go" && off-before < n*NodeBytes {
			t.Errorf("%s: %d bytes off-heap", k.Name, off-before)
		}
		l.Free()
		if err := l.End(); err != nil {
			t.Errorf("%s: %v", k.Name, err)
		}
	}
	if err := allFreed("it", 3); err == nil {
		t.Error("three nodes are left")
	}
}

// eachStore calls f with every store of every shape.
func eachStore(t *testing.T, f func(t *testing.T, st Store)) {
	for _, s := range Shapes {
		if s.Stores[0].Memory != "go" || s.Stores[len(s.Stores)-1].Memory != "freehold" {
			t.Errorf("shape %q does not begin on the Go heap and end on freehold", s.Name)
		}
		for _, st := range s.Stores {
			t.Run(s.Name+"/"+st.Memory, func(t *testing.T) { f(t, st) })
		}
	}
}

// checkAll verifies the data of n entries; skipped is one that was not put, or -1.
func checkAll(t *testing.T, st Store, n, skipped int) (err error) {
	d, err := st.Open(n)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for i := range n {
		if i == skipped {
			continue
		}
		if err := d.Put(i); err != nil {
			t.Fatal(err)
		}
	}
	for i := range d.Checks() {
		err = errors.Join(err, d.Check(i))
	}
	if off := d.OffHeap(); (off > 0) != (st.Memory == "freehold") && n > 0 {
		t.Errorf("%d entries have %d bytes off-heap", n, off)
	}
	return err
}

// What is put is there, whatever the number of entries, and what is missing is found.
func TestDataHoldsItsEntries(t *testing.T) {
	eachStore(t, func(t *testing.T, st Store) {
		if st.About == "" || st.Entry < 8 || !slices.ContainsFunc(Memories, func(m struct{ Name, Title string }) bool { return m.Name == st.Memory }) {
			t.Errorf("%+v is incomplete", st)
		}
		for _, n := range []int{0, 1, 7, nodeLists - 1, nodeLists, nodeLists + 1, 3*nodeLists + 5} {
			if err := checkAll(t, st, n, -1); err != nil {
				t.Errorf("%d entries: %v", n, err)
			}
		}
		for _, skipped := range []int{0, 3, nodeLists + 3} {
			if err := checkAll(t, st, 3*nodeLists+5, skipped); err == nil {
				t.Errorf("it is not found that entry %d is missing", skipped)
			}
		}
	})
}
