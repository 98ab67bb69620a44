package intern

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
)

// A string with as many references as can be counted stays until Close.
func TestCountsDoNotOverflow(t *testing.T) {
	s := New(alloctest.New(t), &Options{RefCounts: true})
	defer s.Close()
	id := freehold.Must(s.Intern("a"))
	*s.store.counts.word(uint32(id)) = maxCount - 1
	s.Retain(id)
	s.Retain(id)
	freehold.Must(s.Intern("a"))
	for range 3 {
		if s.Release(id) || s.Value(id) != "a" || *s.store.counts.word(uint32(id)) != maxCount {
			t.Fatalf("%d references", *s.store.counts.word(uint32(id)))
		}
	}
}

// IDs and offsets that do not fit 32 bits are out of memory, and change nothing.
func TestNumbersRunOut(t *testing.T) {
	const allChunks = 96 // whose words 32 bits can count
	f := &faucet{Allocator: alloctest.New(t), left: -1}
	s := New(f, nil)
	defer s.Close()
	freehold.Must(s.Intern("a"))
	refused := func(want string) {
		t.Helper()
		f.left = 0 // it is not asked
		if _, err := s.Intern("b"); !errors.Is(err, freehold.ErrOutOfMemory) || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
		f.left = -1
	}
	used, next := s.store.records.used, s.store.next
	s.store.records.used, s.store.next = allChunks, s.store.end
	refused("the strings take 16 GiB, which is all that offsets reach")
	s.store.records.used, s.store.next = used, next

	used = s.store.refs.used
	s.store.refs.used = allChunks
	s.store.ids.Store(maxWords)
	refused("strings have all ids")
	s.store.refs.used = used
	s.store.ids.Store(1)

	if id := freehold.Must(s.Intern("b")); id != 1 || s.Value(1) != "b" || s.Len() != 2 {
		t.Errorf("the next string has the ID %d of %d", id, s.Len())
	}
	if fault := s.check(); fault != "" {
		t.Error(fault)
	}
}

// The record of a long string that was freed takes several short ones.
func TestFreedRecordsAreCut(t *testing.T) {
	s := New(alloctest.New(t), &Options{RefCounts: true})
	defer s.Close()
	const n = 100
	for i := range n {
		freehold.Must(s.Intern(fmt.Sprintf("%0*d", maxShort, i)))
	}
	for i := range n {
		s.Release(ID(i))
	}
	free, chunks := s.store.next, s.store.records.used
	for i := range n { // which take 3 words each, as those 63
		for j := range maxRecord / 3 {
			freehold.Must(s.Intern(fmt.Sprintf("%03d%03d", i, j)))
		}
	}
	if s.store.next != free || s.store.records.used != chunks {
		t.Errorf("short strings took %d words beside those of long ones", s.store.next-free)
	}
	if fault := s.check(); fault != "" {
		t.Error(fault)
	}
}

// A string takes the record, the ID and the slot of one that was freed, and no memory.
func TestFreedRecordsNeedNoMemory(t *testing.T) {
	f := &faucet{Allocator: alloctest.New(t), left: -1}
	s := New(f, &Options{RefCounts: true})
	defer s.Close()
	words := recordWords(len("000000"))
	for i := 0; i == 0 || s.store.end-s.store.next >= words; i++ {
		freehold.Must(s.Intern(fmt.Sprintf("%06d", i)))
	}
	for id := range ID(10) {
		s.Release(id)
		f.left = 0
		if _, err := s.Intern(fmt.Sprintf("new %02d", id)); err != nil {
			t.Errorf("string %d: %v", id, err)
		}
		f.left = -1
	}
	if fault := s.check(); fault != "" {
		t.Error(fault)
	}
}

// Strings are in all tables of a Shared, so that goroutines seldom wait for each other.
func TestSharedSpreadsStrings(t *testing.T) {
	s := NewShared(alloctest.New(t), nil)
	defer s.Close()
	const n = 64 * numShards
	for i := range n {
		freehold.Must(s.Intern(fmt.Sprint("string ", i)))
	}
	for i := range s.shards {
		if used := s.shards[i].table.used; used < 16 || used > 256 { // 64 on the average
			t.Errorf("table %d has %d of %d strings", i, used, n)
		}
	}
}

// A free record is not cut if a single word would be left, which no string can take.
func TestFreeRecordsAreNotCutToASingleWord(t *testing.T) {
	s := New(alloctest.New(t), &Options{RefCounts: true})
	defer s.Close()
	offset := func(text string) uint32 { return *s.store.refs.word(uint32(freehold.Must(s.Intern(text)))) }
	id := freehold.Must(s.Intern("8 bytes.")) // 4 words
	at := *s.store.refs.word(uint32(id))
	s.Release(id)
	if offset("7 bytes") == at { // 3 words
		t.Error("a string of 3 words has taken a record of 4")
	}
	if offset("8 other.") != at {
		t.Error("a string of 4 words has not taken the free record of 4")
	}
}
