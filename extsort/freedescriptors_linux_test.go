package extsort

import (
	"os"
	"testing"

	"github.com/freehold-go/freehold"
)

// Open files count, and the look at them leaves none.
func TestFreeDescriptors(t *testing.T) {
	free := freeDescriptors()
	for range 10 {
		f := freehold.Must(os.Open(os.DevNull))
		defer f.Close()
	}
	n := freeDescriptors()
	if n > free-10 {
		t.Errorf("%d with 10 more files open, and %d before", n, free)
	}
	for range 10 {
		if again := freeDescriptors(); again < n {
			t.Fatalf("%d, and %d at the first look", again, n)
		}
	}
}
