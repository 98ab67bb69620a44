//go:build !asan

// Modes together: what one promises holds beside the others.

package heap

import (
	"fmt"
	"testing"
)

// Records have the user's size, without the red zone.
func TestSamplesOfCheckedBlocksAreAsOfOthers(t *testing.T) {
	for name, test := range map[string]func(*testing.T){
		"pointers":       TestReallocPointerOfASampledBlock,
		"misuse":         TestMisuseOfSampledBlocks,
		"Close":          TestCloseEndsSamples,
		"stacks":         TestStackOfASample,
		"tag":            TestTag,
		"tag of samples": TestTagOfSamples,
		"no room":        TestNoRoomForATag,
		"words":          TestGoPointersOfSampledBlocksHaveStacks,
	} {
		t.Run(name, func(t *testing.T) {
			CheckBlocks(t, 1<<20)
			test(t)
		})
	}
}

// Guarded blocks are not checked, and the others are.
func TestGuardsOfCheckedHeapsAreAsOfOthers(t *testing.T) {
	for name, test := range map[string]func(*testing.T){
		"one in N": func(t *testing.T) {
			for _, size := range []int{1, 5000} {
				testOneInN(t, 2, 50, size, 4000)
			}
		},
		"budget":         TestGuardBudget,
		"end":            TestGuardedBlockEndsAtAGuard,
		"bytes around":   TestBytesAroundAGuardedBlock,
		"misuse":         TestMisuseOfGuardedBlocks,
		"quarantine":     TestQuarantine,
		"calls":          TestCallsOnGuardedBlocks,
		"at once":        TestGuardsAtOnce,
		"mapped":         TestMappedGuardsHaveABound,
		"system refuses": TestGuardsWhereTheSystemRefuses,
	} {
		t.Run(name, func(t *testing.T) {
			CheckBlocks(t, 1<<20)
			test(t)
		})
	}
}

// Words in red zones and in blocks in quarantine are nobody's.
func TestGoPointersOfCheckedHeapsAreAsOfOthers(t *testing.T) {
	if err := canTellGoPointers(); err != nil {
		t.Skip(err)
	}
	CheckBlocks(t, 16<<20)
	for name, test := range map[string]func(*testing.T){
		"found":  TestGoPointersAreFound,
		"others": TestOtherWordsAreNoGoPointers,
		"in use": TestGoPointersWhileOthersUseTheHeap,
	} {
		t.Run(name, test)
	}
	sampleAt(t, 0)
	for _, size := range []int{64, 40000} {
		h := newHeap(t, Options{})
		b := alloc(t, h, size)
		freed := alloc(t, h, size)
		clear(b)
		h.Free(freed)
		plant(behind(b, redBytes), 8, goAddr())
		plant(freed, 8, goAddr())
		if got := goPointers(t, h); len(got) != 0 {
			t.Errorf("%d bytes: %+v", size, got)
		}
		fillPoison(behind(b, redBytes))
		fillPoison(freed)
	}
}

// A guarded block whose surroundings were written stays live, for samples too.
func TestSampleOfAGuardedBlockThatWasWrittenAround(t *testing.T) {
	sampleAt(t, 1)
	guardAt(t, 1, 0)
	for _, checked := range []int{0, 1 << 20} {
		CheckBlocks(t, checked)
		name := fmt.Sprint(nameOf(t), checked)
		h := newHeap(t, Options{Name: name})
		b := allocHere(h, 61) // at a multiple of 8, so 3 bytes in front of the guard
		Tag(b, "tag")
		behind(b, 1)[0] = 1
		mustPanic(t, func() { h.Free(b) }, "1 byte past the end of a block of 61 bytes")
		wantUsage(t, name, 1, 61, 0, 0)
		h.Free(b)
		wantUsage(t, name, 1, 61, 1, 61)
		if u := byTag(name)["tag"]; u.FreeBytes != 61 {
			t.Errorf("%+v", u)
		}
		h.check(t)
	}
}

// A block that enters the quarantine is no leak, and one that is larger neither.
func TestSamplesEndWhereTheQuarantineBegins(t *testing.T) {
	CheckBlocks(t, 10_000)
	sampleAt(t, 1)
	for _, size := range []int{100, 20_000} {
		name := fmt.Sprint(nameOf(t), size)
		h := newHeap(t, Options{Name: name})
		b := alloc(t, h, size)
		h.Free(b)
		wantUsage(t, name, 1, int64(size), 1, int64(size))
		if n := h.countRecords(); n != 0 {
			t.Errorf("%d records", n)
		}
		h.check(t)
	}
}
