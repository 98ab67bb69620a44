package subject

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/freehold-go/freehold/cmalloc"
	"github.com/freehold-go/freehold/lab/run"
)

// An allocator's figures are its own: each name opens its malloc, or returns an error that names
// the malloc of this process.
func TestAllocatorsOfCAreHonest(t *testing.T) {
	is, _ := cmalloc.Implementation()
	for name, wants := range map[string]string{"libc": "glibc libc", "jemalloc": "jemalloc"} {
		a, err := openC(name)(0)
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
		b, err := a.Alloc(100, 16)
		if err != nil || len(b) != 100 {
			t.Errorf("%s: %d bytes, %v", name, len(b), err)
		}
		a.Free(b)
	}
}

// check puts n entries but for one, which is -1 for none, and reports whether they are all there.
func check(t *testing.T, d *Data, n, skipped int, offHeap bool) bool {
	t.Helper()
	for i := range n {
		if i == skipped {
			continue
		}
		if err := d.Put(i); err != nil {
			t.Fatal(err)
		}
	}
	sum := d.Sum()
	if off := d.Bytes(); (off >= int64(n)) != offHeap && n > 0 {
		t.Errorf("%d entries have %d bytes off-heap", n, off)
	}
	d.Free()
	if live := d.Live(); live != 0 {
		t.Errorf("all is freed, yet %d are live", live)
	}
	return sum == SumOf(n)
}

// Every entry that was put is found, whatever their number, and missing ones are noticed.
func TestDataHoldsItsEntries(t *testing.T) {
	for _, s := range Shapes {
		if s.Stores[0].Memory != "go" || s.Stores[len(s.Stores)-1].Memory != "freehold" {
			t.Errorf("shape %q does not begin on the Go heap and end on freehold", s.Name)
		}
		for _, st := range s.Stores {
			t.Run(s.Name+"/"+st.Memory, func(t *testing.T) {
				if st.About == "" || st.Entry < 8 || !slices.Contains(LiveMemories, st.Memory) {
					t.Errorf("%+v is incomplete", st)
				}
				holds := func(n, skipped int) bool {
					d, err := st.Open(n)
					if err != nil {
						t.Fatal(err)
					}
					return check(t, d, n, skipped, st.Memory == "freehold")
				}
				for _, n := range []int{0, 1, 7, liveLists - 1, liveLists, liveLists + 1, 3*liveLists + 5} {
					if !holds(n, -1) {
						t.Errorf("the sum of %d entries is wrong", n)
					}
				}
				for _, skipped := range []int{0, 3, liveLists + 3} {
					if holds(3*liveLists+5, skipped) {
						t.Errorf("it is not found that entry %d is missing", skipped)
					}
				}
			})
		}
	}
}
