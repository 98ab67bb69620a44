package metrics

import (
	"slices"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/budget"
)

// accounts returns those with a name.
func accounts(name string) []budget.AccountStats {
	return slices.DeleteFunc(Accounts(), func(st budget.AccountStats) bool { return st.Name != name })
}

func newAccount(t *testing.T, parent *budget.Account, o budget.AccountOptions) *budget.Account {
	a := budget.NewAccount(parent, &o)
	t.Cleanup(a.Close)
	return a
}

func TestAccountsOfOneNameAreAddedUp(t *testing.T) {
	const mib = 1 << 20
	o := budget.AccountOptions{Name: "shard", Soft: 4 * mib, MaxBytes: 8 * mib}
	var sum budget.AccountStats
	for i := range 3 {
		a := newAccount(t, newAccount(t, nil, budget.AccountOptions{Name: t.Name()}), o)
		b := freehold.Must(a.Alloc(5*mib, 1))
		freehold.Must(a.AllocOrEvict(5*mib, 1, func(int) int { a.Free(b); return 5 * mib }))
		r, err := a.Reserve(mib)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Release()
		st := a.Stats()
		if st.Used == 0 || st.Refusals == 0 || st.Evicted == 0 || st.Pressure.Level == budget.Calm {
			t.Fatalf("%+v shows nothing", st)
		}
		if i == 0 {
			sum = st
		} else {
			sum.Soft += st.Soft
			sum.MaxBytes += st.MaxBytes
			sum.Used += st.Used
			sum.Reserved += st.Reserved
			sum.Committed += st.Committed
			sum.Live += st.Live
			sum.LiveBytes += st.LiveBytes
			sum.Refusals += st.Refusals
			sum.Evicted += st.Evicted
			sum.Pressure.Level = max(sum.Pressure.Level, st.Pressure.Level)
			sum.Pressure.Wanted += st.Pressure.Wanted
		}
	}
	got := accounts(t.Name() + "/shard")
	if len(got) != 1 {
		t.Fatalf("%+v", got)
	}
	got[0].Rounds = sum.Rounds // they go on
	if got[0] != sum {
		t.Errorf("\n got %+v\nwant %+v", got[0], sum)
	}
	newAccount(t, newAccount(t, nil, budget.AccountOptions{Name: t.Name()}), budget.AccountOptions{Name: "shard"})
	if got := accounts(t.Name() + "/shard"); len(got) != 1 || got[0].Soft != 0 || got[0].MaxBytes != 0 {
		t.Errorf("a limit, which one of them has not: %+v", got)
	}
}

func TestAccountNameThatIsNoText(t *testing.T) {
	newAccount(t, nil, budget.AccountOptions{Name: "\xff"})
	if len(accounts(`"\xff"`)) != 1 {
		t.Errorf("%+v", Accounts())
	}
}
