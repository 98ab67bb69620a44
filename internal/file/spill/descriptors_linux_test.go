package spill

import (
	"os"
	"testing"

	"github.com/freehold-go/freehold"
)

// FreeDescriptors counts open files, and leaves none open itself.
func TestFreeDescriptors(t *testing.T) {
	free := FreeDescriptors()
	for range 10 {
		f := freehold.Must(os.Open(os.DevNull))
		defer f.Close()
	}
	n := FreeDescriptors()
	if n > free-10 {
		t.Errorf("%d with 10 more files open, and %d before", n, free)
	}
	for range 10 {
		if again := FreeDescriptors(); again < n {
			t.Fatalf("%d, and %d at the first look", again, n)
		}
	}
}
