package freehold_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/freehold-go/freehold"
)

// namesOf returns the names of the open heaps among some names.
func namesOf(among ...string) (names []string) {
	for _, st := range freehold.AllStats() {
		if slices.Contains(among, st.Name) {
			names = append(names, st.Name)
		}
	}
	return names
}

func TestAllStatsAreThoseOfTheOpenHeaps(t *testing.T) {
	freehold.Pages()
	first := freehold.NewHeap(&freehold.HeapOptions{Name: "all 1"})
	second := freehold.NewHeap(&freehold.HeapOptions{Name: "all 2"})
	b := freehold.Must(second.Alloc(100_000, 8))
	if got, want := namesOf("default", "all 1", "all 2"), []string{"default", "all 1", "all 2"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if len(namesOf("pages")) != 1 {
		t.Error("Pages are not among them, or twice")
	}
	for _, st := range freehold.AllStats() {
		if st.Name == "all 2" && st.Live != 1 {
			t.Errorf("%d live blocks, want 1", st.Live)
		}
	}
	second.Free(b)
	first.Close()
	first.Close()
	if got, want := namesOf("all 1", "all 2"), []string{"all 2"}; !slices.Equal(got, want) {
		t.Errorf("after Close of one: %q, want %q", got, want)
	}
	second.Close()
	if got := namesOf("all 1", "all 2"); got != nil {
		t.Errorf("after Close of both: %q", got)
	}
}

func ExampleAllStats() {
	heap := freehold.NewHeap(&freehold.HeapOptions{Name: "index"})
	defer heap.Close()
	freehold.Must(heap.Alloc(100, 8))
	for _, st := range freehold.AllStats() {
		if st.Live > 0 && st.Name == "index" {
			fmt.Println(st.Name, st.Live, st.LiveBytes)
		}
	}
	// Output: index 1 112
}
