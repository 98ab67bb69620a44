package secret

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/freehold-go/freehold/internal/vm"
)

// weaken makes the system refuse calls until the test ends.
func weaken(t *testing.T, refused ...vm.Op) {
	t.Cleanup(vm.SetFault(func(op vm.Op) error {
		for _, r := range refused {
			if op == r {
				return syscall.ENOMEM
			}
		}
		return nil
	}))
}

// everywhere runs f for both kinds of stores and each strength that the system can be made to give.
func everywhere(t *testing.T, f func(t *testing.T, s *Store)) {
	for _, share := range []bool{false, true} {
		for name, refused := range map[string][]vm.Op{"full": nil, "locked": {vm.OpHide}, "none": {vm.OpHide, vm.OpLock}} {
			t.Run(fmt.Sprintf("share=%v/%s", share, name), func(t *testing.T) {
				weaken(t, refused...)
				s := NewStore(&Options{Share: share})
				f(t, s)
				if len(s.room) != 0 {
					t.Errorf("the store holds chunks at the end: %v", s.room)
				}
			})
		}
	}
}

func made(t *testing.T, s *Store, text string) *Secret {
	t.Helper()
	k, err := s.New([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.Destroy() })
	return k
}

func holds(t *testing.T, k *Secret, want string) {
	t.Helper()
	err := k.Use(func(b []byte) error {
		if string(b) != want || cap(b) != len(want) {
			t.Errorf("the secret is %q of capacity %d, want %q", b, cap(b), want)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

var sink byte // keeps loads from being optimized away

func faults(f func()) (fault bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { fault = recover() != nil }()
	f()
	return false
}

func TestSecretsOfAllSizes(t *testing.T) {
	page := int(vm.PageBytes())
	everywhere(t, func(t *testing.T, s *Store) {
		keys := map[*Secret]string{}
		for i, size := range []int{0, 1, 15, 16, 17, 32, 32, 33, page / 2, page/2 + 1, page, page + 1, 5 * page} {
			text := bytes.Repeat([]byte{byte(i + 1)}, size)
			want := string(text)
			k, err := s.New(text)
			if err != nil {
				t.Fatal(err)
			}
			if k.Len() != size || !bytes.Equal(text, make([]byte, size)) {
				t.Errorf("a secret of %d bytes has %d, and New left %q", size, k.Len(), text)
			}
			keys[k] = want
		}
		for k, want := range keys {
			holds(t, k, want)
			if err := errors.Join(k.Destroy(), k.Destroy()); err != nil {
				t.Error(err)
			}
			if err := k.Use(func([]byte) error { t.Error("called"); return nil }); err != ErrDestroyed {
				t.Errorf("Use after Destroy: %v", err)
			}
		}
	})
}

// Secrets of up to half a page share one, in slots of a power of two. Others end at a guard page.
func TestSlots(t *testing.T) {
	page := vm.PageBytes()
	for _, tt := range []struct {
		share       bool
		size, bytes uintptr
	}{
		{true, 0, 16}, {true, 16, 16}, {true, 17, 32}, {true, page / 2, page / 2},
		{true, page/2 + 1, page}, {false, 16, page}, {false, page + 1, 2 * page},
	} {
		k, err := NewStore(&Options{Share: tt.share}).Make(int(tt.size), func([]byte) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		sl, c := k.slot, k.slot.chunk
		if c.slotBytes != tt.bytes || tt.bytes >= page && sl.addr+sl.size != c.addr+c.size {
			t.Errorf("%+v: a slot of %d bytes, and %d bytes before the guard page", tt, c.slotBytes, c.addr+c.size-sl.addr)
		}
		k.Destroy()
	}
}

// The bytes can be read in Use, and not after it, however it ended. They can never be written, and
// nothing can be read past their end.
func TestOnlyUseOpens(t *testing.T) {
	everywhere(t, func(t *testing.T, s *Store) {
		k := made(t, s, "abc")
		if k.Strength()&Closed == 0 {
			t.Skip("this system has no inaccessible memory")
		}
		defer k.Destroy()
		var kept []byte
		closed := func(when string) {
			t.Helper()
			if !faults(func() { sink = kept[0] }) {
				t.Error("readable after", when)
			}
		}
		failed := errors.New("failed")
		if err := k.Use(func(b []byte) error { kept = b; return failed }); err != failed {
			t.Errorf("Use returns %v, want the function's error", err)
		}
		closed("an error")
		func() {
			defer func() { _ = recover() }()
			k.Use(func([]byte) error { panic("f") })
		}()
		closed("a panic")
		done := make(chan bool)
		go func() {
			defer close(done)
			k.Use(func([]byte) error { runtime.Goexit(); return nil })
		}()
		<-done
		closed("Goexit")
		k.Use(func(b []byte) error {
			k.Use(func([]byte) error { return nil })
			if b[0] != 'a' {
				t.Error("an inner Use has changed the bytes")
			}
			if !faults(func() { b[0] = 'x' }) {
				t.Error("writable in Use")
			}
			end := k.slot.chunk.addr + k.slot.chunk.size
			if !faults(func() { sink = *(*byte)(vm.Pointer(end)) }) || !faults(func() { sink = *(*byte)(vm.Pointer(k.slot.chunk.addr - 1)) }) {
				t.Error("no guard pages")
			}
			return nil
		})
		closed("Use")
		k.Destroy()
		closed("Destroy")
	})
}

// No verb of package fmt shows the bytes, or reads them outside of Use.
func TestPrinted(t *testing.T) {
	everywhere(t, func(t *testing.T, s *Store) {
		k := made(t, s, "Sesame")
		defer k.Destroy()
		show := func(when string) {
			for _, verb := range "vTtbcdoOqxXUeEfFgGsp" {
				for _, flags := range []string{"", "+", "#"} {
					format := "%" + flags + string(verb)
					for _, v := range []any{k, *k, []*Secret{k}, struct{ Key *Secret }{k}} {
						text := fmt.Sprintf(format, v)
						for _, bytes := range []string{"Sesame", "83 101 115", "53 65 73", "53 0x65", "536573", "%!s(uint8=83)"} {
							if strings.Contains(text, bytes) {
								t.Errorf("%s: %s of %T shows %s", when, format, v, text)
							}
						}
					}
				}
			}
		}
		show("outside of Use")
		k.Use(func([]byte) error { show("in Use"); return nil })
	})
}

// What fill writes is wiped if Make fails. The next secret in its slot begins as zeros.
func TestMakeThatFails(t *testing.T) {
	everywhere(t, func(t *testing.T, s *Store) {
		neighbor, err := s.New(make([]byte, 16)) // keeps a shared page
		if err != nil {
			t.Fatal(err)
		}
		defer neighbor.Destroy()
		failed := errors.New("failed")
		for _, end := range []func() error{func() error { return failed }, func() error { panic("fill") }, func() error { runtime.Goexit(); return nil }} {
			done := make(chan bool)
			go func() {
				defer close(done)
				defer func() { _ = recover() }()
				_, err := s.Make(16, func(b []byte) error {
					if !bytes.Equal(b, make([]byte, 16)) {
						t.Errorf("fill begins with %q", b)
					}
					copy(b, "a secret of 16 B")
					return end()
				})
				if err != failed {
					t.Errorf("Make returns %v", err)
				}
			}()
			<-done
		}
		neighbor.Destroy()
	})
}

// Destroy waits for a Use that has begun, which still reads the bytes. No other Use begins.
func TestDestroyWaitsForUse(t *testing.T) {
	everywhere(t, func(t *testing.T, s *Store) {
		k := made(t, s, "abc")
		over := false
		destroyed := make(chan error, 2)
		err := k.Use(func(b []byte) error {
			for range 2 {
				go func() {
					err := k.Destroy()
					if !over {
						err = errors.New("Destroy has returned during Use")
					}
					destroyed <- err
				}()
			}
			for k.Use(func([]byte) error { return nil }) != ErrDestroyed {
				runtime.Gosched()
			}
			if string(b) != "abc" {
				t.Errorf("during Destroy the secret is %q", b)
			}
			over = true
			return nil
		})
		if err := errors.Join(err, <-destroyed, <-destroyed); err != nil {
			t.Error(err)
		}
	})
}

// Goroutines make, use and destroy secrets of one store, which share pages.
func TestGoroutines(t *testing.T) {
	everywhere(t, func(t *testing.T, s *Store) {
		common := made(t, s, "common")
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				for i := range 50 {
					want := fmt.Sprintf("%d of %d", i, g)
					k, err := s.New([]byte(want))
					if err != nil {
						t.Error(err)
						return
					}
					holds(t, k, want)
					holds(t, common, "common")
					if err := k.Destroy(); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		common.Destroy()
	})
}

func TestNeed(t *testing.T) {
	weaken(t, vm.OpHide, vm.OpLock)
	text := []byte("abc")
	k, err := NewStore(&Options{Need: Locked | Hidden}).New(text)
	if k != nil || !errors.Is(err, ErrWeak) || !strings.Contains(err.Error(), "ulimit -l") || string(text) != "abc" {
		t.Errorf("without locks: %v, %v, and the text is %q", k, err, text)
	}
	k = made(t, NewStore(nil), "abc")
	if k.Strength()&(Locked|Hidden) != 0 {
		t.Errorf("without locks a secret is %v", k.Strength())
	}
	if got := (Locked | NoDump).String() + Strength(0).String(); got != "Locked|NoDumpnone" {
		t.Error(got)
	}
}

// Refusals of the system are errors, and the next call succeeds.
func TestRefusals(t *testing.T) {
	s := NewStore(&Options{Share: true})
	k := made(t, s, "abc")
	nop := func([]byte) error { return nil }
	for _, f := range []func() error{
		func() error { return k.Use(nop) },
		func() error { _, err := NewStore(nil).Make(1, nop); return err },
		k.Destroy,
	} {
		restore := vm.SetFault(func(op vm.Op) error { return syscall.ENOMEM })
		err := f()
		restore()
		if !errors.Is(err, syscall.ENOMEM) || errors.Is(err, ErrWeak) {
			t.Error(err)
		}
	}
	// The first call of Use opens the page, and the second closes it.
	other := made(t, s, "def")
	restore := vm.SetFault(vm.FailNth(2, true, syscall.ENOMEM))
	err := other.Use(nop)
	restore()
	if !errors.Is(err, syscall.ENOMEM) || other.Use(nop) != nil || other.slot.chunk.access != vm.NoAccess {
		t.Errorf("a page that cannot be closed: %v, and access %d in the end", err, other.slot.chunk.access)
	}
	again := k.Destroy()
	holds(t, other, "def") // which did not get the slot of k before k was wiped
	if err := errors.Join(again, other.Destroy()); err != nil || len(s.room) != 0 {
		t.Errorf("Destroy again: %v, and %d chunks", err, len(s.room))
	}
	used, text := ranges.used, strings.Repeat("x", 7*int(vm.PageBytes()))
	for range 2 { // no range can be reserved, and later an idle one cannot be committed
		restore := vm.SetFault(func(op vm.Op) error { return syscall.ENOMEM })
		_, err := NewStore(nil).Make(len(text), nop)
		restore()
		if err == nil || ranges.used != used {
			t.Errorf("%d ranges are in use after %v, want %d", ranges.used, err, used)
		}
		made(t, NewStore(nil), text).Destroy()
	}
}

// A Use that is the last use of its secret keeps the secret.
func TestCollectDuringTheLastUse(t *testing.T) {
	k, err := NewStore(nil).Make(3, func([]byte) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	sl := k.slot
	k.Use(func([]byte) error {
		for range 50 {
			runtime.GC()
			sl.chunk.mu.Lock()
			destroyed := sl.destroyed
			sl.chunk.mu.Unlock()
			if destroyed {
				t.Error("the secret is destroyed")
				break
			}
		}
		return nil
	})
}

// Secrets leave mappings for Go's runtime. With Share, and after a Destroy, there is room again.
func TestMappingsAreLeft(t *testing.T) {
	ranges.mu.Lock()
	most := ranges.most
	ranges.most = ranges.used + 3
	ranges.mu.Unlock()
	defer func() { ranges.most = most }()
	s, shared := NewStore(nil), NewStore(&Options{Share: true})
	k := made(t, s, "abc")
	made(t, s, "def")
	made(t, shared, "ghi")
	if _, err := s.New([]byte("jkl")); err == nil || !strings.Contains(err.Error(), "vm.max_map_count") {
		t.Errorf("without mappings: %v", err)
	}
	made(t, shared, "mno")
	k.Destroy()
	made(t, s, "pqr")
}

// Secrets that nothing refers to are destroyed. Addresses are used again.
func TestDroppedSecrets(t *testing.T) {
	s := NewStore(&Options{Share: true})
	dropped := make([]*Secret, 100)
	for i := range dropped {
		var err error
		if dropped[i], err = s.New(make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
	}
	counts := func() (used, all int) {
		ranges.mu.Lock()
		defer ranges.mu.Unlock()
		return ranges.used, ranges.used + len(ranges.idle[vm.PageBytes()])
	}
	held, _ := counts()
	runtime.KeepAlive(dropped)
	inPage := int(vm.PageBytes()) / 128
	for used := held; used > held-(len(dropped)+inPage-1)/inPage; used, _ = counts() {
		runtime.GC()
		runtime.Gosched()
	}
	_, before := counts()
	for range 10 {
		made(t, s, "abc").Destroy()
	}
	if _, after := counts(); after != before {
		t.Errorf("%d ranges, and %d after a secret was made and destroyed ten times", before, after)
	}
}

func BenchmarkUse(b *testing.B) {
	k, err := NewStore(nil).Make(32, func([]byte) error { return nil })
	if err != nil {
		b.Fatal(err)
	}
	nop := func([]byte) error { return nil }
	use := func(b *testing.B) {
		for b.Loop() {
			k.Use(nop)
		}
	}
	b.Run("closed", use)
	b.Run("open", func(b *testing.B) { k.Use(func([]byte) error { use(b); return nil }) })
}
