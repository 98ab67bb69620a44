// Tests of the table of types that have passed, from inside.

package freehold

import (
	"reflect"
	"testing"
)

// emptyTable gives the test a table of its own.
func emptyTable(t *testing.T) {
	var saved [len(passed)]uintptr
	for i := range passed {
		saved[i] = passed[i].Swap(0)
	}
	t.Cleanup(func() {
		for i := range passed {
			passed[i].Store(saved[i])
		}
	})
}

var (
	free    = reflect.TypeFor[int]()
	notFree = reflect.TypeFor[string]()
)

// fakeWord returns a number that is not the word of a type. It is odd, since words
// are even, and may be as small on wasm.
func fakeWord(i int) uintptr { return uintptr(i)*64 + 1 }

// known reports whether the table has word: then inspect does not look at the type.
func known(word uintptr) bool { return inspect(word, notFree) == "" }

func TestTypesThatShareASlotAreAllRemembered(t *testing.T) {
	emptyTable(t)
	first := uintptr(64)
	words := []uintptr{first}
	for w := first + 64; len(words) < 5; w += 64 {
		if slotOf(w) == slotOf(first) {
			words = append(words, w)
		}
	}
	for i, w := range words {
		if known(w) {
			t.Errorf("word %d is known before it was seen", i)
		}
		if fault := inspect(w, free); fault != "" {
			t.Errorf("word %d: %s", i, fault)
		}
		for j, w := range words[:i+1] {
			if !known(w) {
				t.Errorf("word %d is not known any more after word %d", j, i)
			}
		}
	}
}

func TestTypesThatFailAreNotRemembered(t *testing.T) {
	emptyTable(t)
	for range 3 {
		if inspect(64, notFree) == "" {
			t.Fatal("a string has passed")
		}
	}
	if inspect(64, free) != "" {
		t.Fatal("an int has not passed")
	}
}

func TestFullTableStillAnswers(t *testing.T) {
	emptyTable(t)
	for i := range len(passed) {
		if fault := inspect(fakeWord(i), free); fault != "" {
			t.Fatal(fault)
		}
	}
	for i := range passed {
		if passed[i].Load() == 0 {
			t.Fatalf("slot %d is empty", i)
		}
	}
	if last := fakeWord(len(passed)); inspect(last, free) != "" || inspect(last, notFree) == "" {
		t.Error("wrong answers from a full table")
	}
	if PointerFree[[77]int]() != nil || PointerFree[[77]string]() == nil {
		t.Error("wrong answers from PointerFree with a full table")
	}
}

// busyType is a type during whose inspection something else happens.
type busyType struct {
	reflect.Type
	meanwhile func()
}

func (b busyType) Kind() reflect.Kind {
	b.meanwhile()
	return b.Type.Kind()
}

// count returns how often word is in the table.
func count(word uintptr) (n int) {
	for i := range passed {
		if passed[i].Load() == word {
			n++
		}
	}
	return n
}

func TestTypeThatTwoInspectAtOnceIsRememberedOnce(t *testing.T) {
	emptyTable(t)
	inspect(64, busyType{free, func() { inspect(64, free) }})
	if n := count(64); n != 1 {
		t.Errorf("the word is there %d times", n)
	}
}

func TestTypeThatLosesItsSlotIsRememberedElsewhere(t *testing.T) {
	emptyTable(t)
	other := uintptr(128)
	for slotOf(other) != slotOf(64) {
		other += 64
	}
	inspect(64, busyType{free, func() { inspect(other, free) }})
	if count(64) != 1 || count(other) != 1 {
		t.Errorf("the words of one slot are there %d times and %d times", count(64), count(other))
	}
}

func TestPointerFreeRemembersTheType(t *testing.T) {
	emptyTable(t)
	if isKnown[[78]int]() {
		t.Fatal("known in an empty table")
	}
	if PointerFree[[78]int]() != nil || !isKnown[[78]int]() {
		t.Error("the type is not known after it has passed")
	}
}
