// Accounts as allocators, and as parts of a tree.

package budget

import (
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/internal/panics"
)

const never = time.Duration(-1) // memory is given back by Trim alone

// newAccount returns an account that is closed when the test ends.
func newAccount(t testing.TB, parent *Account, name string, hard int64) *Account {
	return newAccountAt(t, time.Now, parent, name, hard)
}

// newAccountAt is newAccount with a clock for an account at the top.
func newAccountAt(t testing.TB, now func() time.Time, parent *Account, name string, hard int64) *Account {
	a := makeAccount(parent, &AccountOptions{Name: name, MaxBytes: hard, Decay: never}, now, nil)
	t.Cleanup(a.Close)
	return a
}

func mustAlloc(t testing.TB, a freehold.Allocator, size int) []byte {
	t.Helper()
	b, err := a.Alloc(size, 8)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// wantFull checks that an error is of an account that is full.
func wantFull(t testing.TB, err error, in *Account) {
	t.Helper()
	var full *FullError
	if !errors.As(err, &full) || full.Account != in || !errors.Is(err, freehold.ErrOutOfMemory) {
		t.Errorf("%v, want that %v is full", err, in)
	}
}

// take charges an account as its heap does: it asks for room if there is none, and tries again.
func take(a *Account, bytes int64) error {
	p := payer{a}
	err := p.Charge(int(bytes))
	if err != nil && p.MakeRoom(int(bytes)) {
		err = p.Charge(int(bytes))
	}
	return err
}

func mustTake(t testing.TB, a *Account, bytes int64) {
	t.Helper()
	if err := take(a, bytes); err != nil {
		t.Fatal(err)
	}
}

// give takes bytes off an account as its heap does.
func give(a *Account, bytes int64) { payer{a}.Refund(int(bytes)) }

var wantPanic = panics.Want

func TestAccountConforms(t *testing.T) {
	alloctest.TestAllocator(t, func(t *testing.T) freehold.Allocator {
		top := newAccount(t, nil, "top", 1<<30)
		middle := newAccount(t, top, "middle", 0)
		a := newAccount(t, middle, "a", 1<<30)
		t.Cleanup(func() { // before they are closed
			if st := a.Stats(); st.Live != 0 || st.LiveBytes != 0 {
				t.Errorf("left: %v", a)
			}
			if top.Stats().Used != a.Stats().Committed {
				t.Errorf("%v of %v", top, a)
			}
			a.Close()
			for _, x := range []*Account{top, middle} {
				if st := x.Stats(); st.Used != 0 || st.Peak == 0 {
					t.Errorf("after Close of the account below: %+v", st)
				}
			}
		})
		return a
	}, &alloctest.Options{Concurrent: true, Detects: alloctest.AllMistakes})
}

func TestFullSaysWhichAccount(t *testing.T) {
	top := newAccount(t, nil, "process", 64<<20)
	middle := newAccount(t, top, "search", 8<<20)
	a := newAccount(t, middle, "tenant", 16<<20) // above its parent's: that counts
	b := mustAlloc(t, a, 4<<20)
	before := a.Stats()
	for _, tt := range []struct {
		size int
		full *Account
		text string
	}{
		{6 << 20, middle, `account "process/search": 6291456 bytes more would exceed the limit of 8388608`},
		{100 << 20, a, `account "process/search/tenant": 104857600 bytes more would exceed the limit of 16777216`}, // the first on the way up
	} {
		_, err := a.Alloc(tt.size, 8)
		_, zeroedErr := a.Zeroed(tt.size, 8)
		for _, err := range []error{err, zeroedErr} {
			wantFull(t, err, tt.full)
			if err.Error() != "freehold: out of memory: "+tt.text {
				t.Error(err)
			}
		}
	}
	if _, ok := a.Resize(b, 10<<20); ok {
		t.Error("grew above the limit")
	}
	after := a.Stats()
	if after.Used != before.Used || after.Live != before.Live || after.Room != before.Room || after.Room >= 4<<20 || middle.Stats().Refusals != 2 || a.Stats().Refusals != 2 {
		t.Errorf("%+v, before the refusals %+v", after, before)
	}
	a.Free(b)
	a.Free(mustAlloc(t, a, 6<<20))
}

// Trim gives back what waits in quarantine too: make checked runs this with one.
func TestTrimOfFreedBlocks(t *testing.T) {
	a := newAccount(t, nil, "a", 0)
	a.Free(mustAlloc(t, a, 4<<20))
	a.Trim()
	if a.Stats().Used > 1<<20 {
		t.Errorf("after Trim: %v", a)
	}
}

// The free blocks in others' caches are looked for now and then, free pages always unless that
// has just been in vain.
func TestRefusalsDrainOthersNowAndThen(t *testing.T) {
	now, search := time.Unix(1e9, 0), time.Duration(0)
	top := newAccountAt(t, func() time.Time { now = now.Add(search); return now }, nil, "top", 8<<20)
	one, two := newAccount(t, top, "one", 0), newAccount(t, top, "two", 0)
	refused := func() {
		t.Helper()
		_, err := two.Alloc(7<<20, 8)
		wantFull(t, err, top)
	}
	served := func(size int) {
		t.Helper()
		two.Free(mustAlloc(t, two, size))
		two.Trim()
	}
	var small [][]byte // which the caches keep: few of each size
	for size := 256; size <= 4096; size += 128 {
		for sum := 0; sum < 48<<10; sum += size {
			small = append(small, mustAlloc(t, one, size))
		}
	}
	large := mustAlloc(t, one, 1<<20)
	refused()
	for _, b := range small {
		one.Free(b)
	}
	one.Free(large)
	refused() // too soon for a drain
	served(5 << 20)
	now = now.Add(trimPause)
	served(7 << 20)
	large = mustAlloc(t, one, 1<<20)
	search = time.Second
	refused()
	search = 0
	one.Free(large)
	refused() // the last search was in vain, and took long
	now = now.Add(time.Hour)
	served(7 << 20)
}

func TestSetLimits(t *testing.T) {
	top := newAccount(t, nil, "top", 0)
	a := newAccount(t, top, "a", 0)
	b := mustAlloc(t, a, 4<<20)
	top.SetLimits(0, 1<<20) // below what is in use
	if st := top.Stats(); st.Pressure.Level != Hard || st.Room != 0 || st.Pressure.Wanted < 3<<20 {
		t.Errorf("%+v", st)
	}
	_, err := a.Alloc(1<<20, 8)
	wantFull(t, err, top)
	b[4<<20-1] = 1 // nothing was taken away
	a.Free(b)
	top.SetLimits(0, 2<<20)
	if st := top.Stats(); st.Pressure.Level != Calm || st.Used > 1<<20 {
		t.Errorf("free pages were not given back: %+v", st)
	}
	a.Free(mustAlloc(t, a, 1<<20))
	top.SetLimits(3, 2) // the hard limit counts
	if p := top.Stats().Pressure; p.Level != Hard {
		t.Errorf("%+v", p)
	}
	top.SetLimits(0, 0)
	if st := top.Stats(); st.Pressure.Level != Calm || st.Room != math.MaxInt64 {
		t.Errorf("%+v", st)
	}
	a.SetLimits(0, math.MaxInt64)
	a.Free(mustAlloc(t, a, 8<<20))
}

func TestCloseWithLiveBlocks(t *testing.T) {
	top := newAccount(t, nil, "process", 0)
	middle := newAccount(t, top, "search", 0)
	a := newAccount(t, middle, "tenant", 0)
	beside := newAccount(t, top, "beside", 0)
	mustAlloc(t, a, 1<<20)
	mustAlloc(t, middle, 100)
	kept := mustAlloc(t, beside, 100)
	middle.Close()
	middle.Close()
	if st := middle.Stats(); !st.Closed || st.Live != 1 || st.LiveBytes == 0 {
		t.Errorf("%+v", st)
	}
	if st := a.Stats(); !st.Closed || st.Live != 1 || st.LiveBytes != 1<<20 {
		t.Errorf("%+v", st)
	}
	if s := a.String(); !strings.HasPrefix(s, `account "process/search/tenant": closed with `) || !strings.HasSuffix(s, " used, 1MiB live in 1 block") {
		t.Error(s)
	}
	if top.Stats().Used != beside.Stats().Committed {
		t.Errorf("the account above is still charged: %v", top)
	}
	kept[0] = 1
	beside.Free(kept)
	closed := ` account "process/search" is closed`
	for call, f := range map[string]func(){
		"budget.NewAccount":  func() { NewAccount(middle, nil) },
		"Account.SetLimits":  func() { middle.SetLimits(1, 1) },
		"Account.Trim":       func() { middle.Trim() },
		"Account.OnPressure": func() { middle.OnPressure(0, func(context.Context, Pressure) {}) },
	} {
		wantPanic(t, "freehold: "+call+":"+closed, f)
	}
	wantPanic(t, `freehold: Heap.Alloc: heap "process/search" is closed`, func() { middle.Alloc(1, 1) })
	wantPanic(t, `freehold: Heap.Alloc: heap "process/search" is closed`, func() { middle.AllocOrEvict(1, 1, nil) })
}

func TestAccountMistakes(t *testing.T) {
	wantPanic(t, "freehold: budget.NewAccount: AccountOptions.MaxBytes -1, want 0 or more", func() { NewAccount(nil, &AccountOptions{MaxBytes: -1}) })
	wantPanic(t, "freehold: budget.NewAccount: AccountOptions.Soft -1, want 0 or more", func() { NewAccount(nil, &AccountOptions{Soft: -1}) })
	a := newAccount(t, nil, "", 0)
	wantPanic(t, "freehold: Account.SetLimits: soft -1, want 0 or more", func() { a.SetLimits(-1, 0) })
	wantPanic(t, "freehold: Account.SetLimits: hard -1, want 0 or more", func() { a.SetLimits(0, -1) })
	wantPanic(t, "freehold: Account.OnPressure: f is nil", func() { a.OnPressure(0, nil) })
	zero := " zero value: budget.NewAccount makes an Account"
	for call, f := range map[string]func(*Account){
		"budget.NewAccount":  func(a *Account) { NewAccount(a, nil) },
		"Account.Name":       func(a *Account) { a.Name() },
		"Account.Trim":       func(a *Account) { a.Trim() },
		"Account.SetLimits":  func(a *Account) { a.SetLimits(1, 1) },
		"Account.OnPressure": func(a *Account) { a.OnPressure(0, nil) },
		"Account.Stats":      func(a *Account) { a.Stats() },
		"Account.Close":      func(a *Account) { a.Close() },
	} {
		wantPanic(t, "freehold: "+call+":"+zero, func() { f(&Account{}) })
	}
}

func TestAccountsHaveNames(t *testing.T) {
	one, two := NewAccount(nil, nil), NewAccount(nil, nil)
	defer one.Close()
	defer two.Close()
	if one.Name() == two.Name() || !strings.HasPrefix(one.Name(), "account ") {
		t.Errorf("%q, %q", one.Name(), two.Name())
	}
	a := newAccount(t, one, "part", 64<<20)
	mustAlloc(t, a, 1000)
	for _, st := range freehold.AllStats() {
		if st.Name == a.Name() && st.Live == 1 && st.MaxBytes == 64<<20 {
			return
		}
	}
	t.Error("its heap is not among all")
}

func TestAccountStatsText(t *testing.T) {
	st := AccountStats{Name: "a/b", Used: 3 << 20, Committed: 3 << 20, Soft: 4 << 20, MaxBytes: 5 << 20, Live: 2, LiveBytes: 3 << 30, Pressure: Pressure{Soft, 7}}
	if got, want := st.String(), `account "a/b": 3MiB used, 3GiB live in 2 blocks, soft limit 4MiB, limit 5MiB, pressure soft`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	st.Used, st.Live, st.LiveBytes = 4<<20, 0, 0
	if got, want := st.String(), `account "a/b": 4MiB used, 1MiB of it by the accounts below, 0B live in 0 blocks of its own, soft limit `; !strings.HasPrefix(got, want) {
		t.Errorf("%s, want %s", got, want)
	}
	a, none := newAccount(t, nil, "x", 1<<20), (*Account)(nil)
	if a.String() != a.Stats().String() || none.String() != "<nil>" {
		t.Error(a)
	}
}

// Memory that is not used is given back after Decay.
func TestDecayOfAnAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := NewAccount(nil, &AccountOptions{Decay: time.Hour})
		defer a.Close()
		a.Free(mustAlloc(t, a, 1<<20))
		time.Sleep(time.Minute)
		if st := a.Stats(); st.Used < 1<<20 {
			t.Errorf("after a minute: %v", st)
		}
		time.Sleep(3 * time.Hour)
		if st := a.Stats(); st.Used >= 1<<20 {
			t.Errorf("after hours: %v", st)
		}
	})
}

func TestAllAccounts(t *testing.T) {
	names := func() (all []string) {
		for _, st := range AllAccounts() {
			if strings.HasPrefix(st.Name, t.Name()) {
				all = append(all, st.Name)
			}
		}
		return all
	}
	top := NewAccount(nil, &AccountOptions{Name: t.Name()})
	defer top.Close()
	below := NewAccount(top, &AccountOptions{Name: "below"})
	NewAccount(top, &AccountOptions{Name: "beside"})
	if got, want := names(), []string{t.Name(), t.Name() + "/below", t.Name() + "/beside"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	below.Close()
	if got, want := names(), []string{t.Name(), t.Name() + "/beside"}; !slices.Equal(got, want) {
		t.Errorf("after Close: %q, want %q", got, want)
	}
}

// Close looks for the accounts below once, whatever their number, and not once for each.
func TestCloseOfManyAccountsIsLinear(t *testing.T) {
	closing := func(n int) (bytes uint64) {
		top := NewAccount(nil, &AccountOptions{Name: t.Name()})
		for range n / 2 {
			NewAccount(NewAccount(top, nil), nil)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		top.Close()
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc // a search makes a list
	}
	few, many := closing(100), closing(400)
	if many > 8*few {
		t.Errorf("Close allocates %d bytes for 100 accounts and %d for 400", few, many)
	}
}

// What an account has left when it is closed is its own: the accounts below are closed before.
func TestCloseBeginsAtTheDeepest(t *testing.T) {
	top := NewAccount(nil, nil)
	middle := NewAccount(top, nil)
	NewAccount(top, nil)
	leaf := NewAccount(middle, nil)
	mustAlloc(t, leaf, 1<<20)
	top.Close()
	if st := middle.Stats(); st.Used != 0 || leaf.Stats().Used < 1<<20 {
		t.Errorf("%v, and below it %v", st, leaf)
	}
}
