package freehold

import (
	"errors"
	"fmt"
	"testing"

	"github.com/freehold-go/freehold/internal/panics"
	"github.com/freehold-go/freehold/internal/vm"
)

func TestAdviceIsWhatItIsCalled(t *testing.T) {
	want := map[Advice]vm.Advice{AdviceNormal: vm.Normal, AdviceWillNeed: vm.WillNeed, AdviceDontNeed: vm.DontNeed,
		AdviceSequential: vm.Sequential, AdviceRandom: vm.Random, AdviceHugePages: vm.HugePages}
	for a, v := range want {
		if adviceOf[a] != v {
			t.Errorf("advice %d is %d to the system, want %d", a, adviceOf[a], v)
		}
	}
	if len(adviceOf) != len(want) {
		t.Errorf("%d advices, want %d", len(adviceOf), len(want))
	}
}

// Advice is about all elements of a slice, whatever their size.
func TestAdviceIsAboutTheWholeSlice(t *testing.T) {
	h := NewHeap(nil)
	defer h.Close()
	s := Must(MakeSlice[uint64](h, 64<<10/8))
	s[0], s[len(s)-1] = 1, 2
	if err := Advise(s, AdviceDontNeed); err != nil {
		t.Skip("this system drops nothing: ", err)
	}
	if (s[0] == 0) != (s[len(s)-1] == 0) {
		t.Errorf("a part was dropped: %d, %d", s[0], s[len(s)-1])
	}
}

func TestAdviceAboutOtherMemory(t *testing.T) {
	if err := Advise(make([]byte, 1<<20), AdviceWillNeed); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Go memory: %v", err)
	}
	if err := Advise([]int(nil), AdviceWillNeed); err != nil {
		t.Errorf("nil: %v", err)
	}
}

func TestAdviceThatDoesNotExistIsAPanic(t *testing.T) {
	for _, a := range []Advice{-1, AdviceHugePages + 1} {
		panics.Want(t, fmt.Sprintf("freehold: Advise: advice %d, want 0 to 5", a), func() { Advise([]int{1}, a) })
	}
}
