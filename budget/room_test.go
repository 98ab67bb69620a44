// Room: what accounts that share a limit give back to each other.

package budget

import (
	"testing"
	"time"
)

// A heap that was refused tries again if there is room by now, and not if no account gave any back.
func TestMakeRoom(t *testing.T) {
	top := newAccount(t, nil, "top", 1000)
	a := newAccount(t, top, "a", 0)
	want := func(p payer, bytes int, again bool) {
		t.Helper()
		if got := p.MakeRoom(bytes); got != again {
			t.Errorf("another try: %t, want %t", got, again)
		}
	}
	want(payer{a}, 1000, true)
	mustTake(t, a, 600)
	want(payer{top}, 400, true)
	if st := top.Stats(); st.Refusals != 0 {
		t.Errorf("%+v", st)
	}
	alone := newAccount(t, nil, "alone", 1000)
	want(payer{alone}, 1001, false)
	if st := alone.Stats(); st.Refusals != 1 {
		t.Errorf("%+v", st)
	}
	give(a, 600)
}

// A request has free pages of others given back, no more than it takes.
func TestFreePagesAreGivenBackAsNeeded(t *testing.T) {
	top := newAccount(t, nil, "top", 16<<20)
	var others []*Account
	for range 4 {
		a := newAccount(t, top, "other", 0)
		a.Free(mustAlloc(t, a, 3<<20))
		others = append(others, a)
	}
	a := newAccount(t, top, "a", 0)
	mustAlloc(t, a, 5<<20)
	left := 0
	for _, other := range others {
		if other.Stats().Committed >= 3<<20 {
			left++
		}
	}
	if left != 3 {
		t.Errorf("%d accounts have their free pages, want 3", left)
	}
}

// Trim and a refusal do not trim the accounts beside, or in another tree.
func TestAccountsBesideAreLeftAlone(t *testing.T) {
	top := newAccount(t, nil, "top", 0)
	a, beside, stranger := newAccount(t, top, "a", 8<<20), newAccount(t, top, "beside", 0), newAccount(t, nil, "stranger", 0)
	below := newAccount(t, a, "below", 0)
	for _, x := range []*Account{beside, stranger, below} {
		x.Free(mustAlloc(t, x, 1<<20))
	}
	_, err := a.Alloc(8<<20, 8)
	wantFull(t, err, a)
	for range 2 {
		if below.Stats().Committed > 512<<10 {
			t.Errorf("%v keeps its free pages", below)
		}
		if beside.Stats().Committed < 1<<20 || stranger.Stats().Committed < 1<<20 {
			t.Errorf("%v and %v were trimmed", beside, stranger)
		}
		below.Free(mustAlloc(t, below, 1<<20))
		a.Trim()
	}
}

// A search and a drain that were in vain take a tenth of the time at most. One that was not does
// not keep the next one from it.
func TestSearchesTakeAPartOfTheTime(t *testing.T) {
	now := time.Unix(1e9, 0)
	top := newAccountAt(t, func() time.Time { now = now.Add(time.Second); return now }, nil, "top", 8<<20)
	one, two := newAccount(t, top, "one", 0), newAccount(t, top, "two", 0)
	for range 3 {
		for _, a := range []*Account{one, two} {
			a.Free(mustAlloc(t, a, 6<<20)) // with the free pages of the other
		}
	}
	b := mustAlloc(t, one, 4<<20)
	_, err := two.Alloc(4<<20, 8)
	wantFull(t, err, top)
	const least = (searchShare - 3) * time.Second // each look at the clock takes a second
	if search, drain := top.searches.next.Sub(now), top.searches.drain.Sub(now); search < least || drain < least {
		t.Errorf("the next search is in %v, the next drain in %v", search, drain)
	}
	one.Free(b)
}

// A few bytes take a page that is free elsewhere, also while the caches are not drained again.
func TestRoomForLessThanAPage(t *testing.T) {
	now := time.Unix(1e9, 0)
	top := newAccountAt(t, func() time.Time { return now }, nil, "top", 8<<20)
	one, two := newAccount(t, top, "one", 0), newAccount(t, top, "two", 0)
	b := mustAlloc(t, one, 4<<20)
	room := two.Stats().Room
	mustTake(t, two, room)
	wantFull(t, take(two, 1000), top)
	one.Free(b)
	mustTake(t, two, 1000)
	give(two, room+1000)
}
