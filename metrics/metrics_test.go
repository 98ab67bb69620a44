package metrics

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/budget"
	"github.com/freehold-go/freehold/cache"
)

// named returns the elements with the given name.
func named[S any](all []S, name string) []S {
	return slices.DeleteFunc(all, func(st S) bool { return reflect.ValueOf(st).Field(0).String() != name })
}

func newHeap(t *testing.T, name string, maxBytes int, sizes ...int) {
	h := freehold.NewHeap(&freehold.HeapOptions{Name: name, MaxBytes: maxBytes})
	t.Cleanup(h.Close)
	for _, size := range sizes {
		freehold.Must(h.Alloc(size, 8))
	}
}

// Heaps with one name become one entry, at the place of the first, with their classes merged in
// order.
func TestHeapsOfOneNameAreAddedUp(t *testing.T) {
	name, other := t.Name()+" 2", t.Name()+" 1"
	newHeap(t, name, 8<<20, 64, 4096, 100_000)
	newHeap(t, other, 0)
	newHeap(t, name, 4<<20, 16, 64, 100_000)
	newHeap(t, name, 2<<20, 2048, 64)
	all := slices.DeleteFunc(ByName(), func(st freehold.Stats) bool { return st.Name != name && st.Name != other })
	if len(all) != 2 || all[1].Name != other {
		t.Fatalf("%+v", all)
	}
	var classes []string
	for _, c := range all[0].Classes {
		classes = append(classes, fmt.Sprint(c.BlockSize, " ", c.Live))
	}
	if st, want := all[0], []string{"16 1", "64 3", "2048 1", "4096 1"}; st.Live != 8 || st.Large != 2 || st.MaxBytes != 14<<20 || !slices.Equal(classes, want) {
		t.Errorf("%+v", st)
	}
}

// If one heap or account has no limit, its name has none.
func TestLimitsOfOneName(t *testing.T) {
	for i, limits := range [][]int{{1 << 20, 0, 1 << 20}, {0, 1 << 20}} {
		name := fmt.Sprint(t.Name(), i)
		for _, limit := range limits {
			newHeap(t, name, limit)
			a := budget.NewAccount(nil, &budget.AccountOptions{Name: name + " account", MaxBytes: int64(limit)})
			t.Cleanup(a.Close)
		}
		heaps, accounts := named(ByName(), name), named(Accounts(), name+" account")
		if len(heaps) != 1 || heaps[0].MaxBytes != 0 || len(accounts) != 1 || accounts[0].MaxBytes != 0 || accounts[0].Soft != 0 {
			t.Errorf("%+v, %+v", heaps, accounts)
		}
	}
}

func TestNamesThatAreNotUTF8AreQuoted(t *testing.T) {
	newHeap(t, t.Name()+"\xff", 0)
	newHeap(t, t.Name()+"\xfe", 0)
	if name := `"` + t.Name() + `\xff"`; len(named(ByName(), name)) != 1 {
		t.Errorf("no heap %s", name)
	}
}

// fill sets each number of a struct to a different value, from *n up.
func fill(v reflect.Value, n *int64) {
	for i := range v.NumField() {
		switch f := v.Field(i); {
		case f.Kind() == reflect.Struct:
			fill(f, n)
		case f.CanInt():
			f.SetInt(*n)
		case f.CanUint():
			f.SetUint(uint64(*n))
		}
		*n += 3
	}
}

// wantSums checks that each number of sum, except the fields in but, is the sum in a and b.
func wantSums(t *testing.T, sum, a, b reflect.Value, but ...string) {
	t.Helper()
	for i := range sum.NumField() {
		name, f := sum.Type().Field(i).Name, sum.Field(i)
		switch {
		case slices.Contains(but, name):
		case f.Kind() == reflect.Struct:
			wantSums(t, f, a.Field(i), b.Field(i), but...)
		case f.CanInt() && f.Int() != a.Field(i).Int()+b.Field(i).Int(),
			f.CanUint() && f.Uint() != a.Field(i).Uint()+b.Field(i).Uint():
			t.Errorf("%v.%s of %v and %v is %v", sum.Type(), name, a.Field(i), b.Field(i), f)
		}
	}
}

// filled returns two structs whose numbers all differ.
func filled[S any]() (a, b S) {
	n := int64(1)
	fill(reflect.ValueOf(&a).Elem(), &n)
	n *= 100
	fill(reflect.ValueOf(&b).Elem(), &n)
	return a, b
}

// Each figure is added up, including figures that only a field names.
func TestEachFieldIsAddedUp(t *testing.T) {
	a, b := filled[freehold.Stats]()
	one, two := filled[freehold.ClassStats]()
	two.BlockSize = one.BlockSize
	a.Classes, b.Classes = []freehold.ClassStats{one}, []freehold.ClassStats{two}
	sum := a
	sum.Classes = []freehold.ClassStats{one}
	add(&sum, b)
	wantSums(t, reflect.ValueOf(sum), reflect.ValueOf(a), reflect.ValueOf(b))
	wantSums(t, reflect.ValueOf(sum.Classes[0]), reflect.ValueOf(one), reflect.ValueOf(two), "BlockSize")

	x, y := filled[budget.AccountStats]()
	total := x
	addAccount(&total, y)
	wantSums(t, reflect.ValueOf(total), reflect.ValueOf(x), reflect.ValueOf(y), "Peak", "Room", "Level")
	c, d := filled[cache.Stats]()
	both := c
	addCache(&both, d)
	wantSums(t, reflect.ValueOf(both), reflect.ValueOf(c), reflect.ValueOf(d))
	if total.Peak != x.Peak || total.Room != x.Room || total.Pressure.Level != y.Pressure.Level {
		t.Errorf("%+v", total)
	}
}

// Caches with one name become one entry, unnamed ones too. Closed caches do not count.
func TestCachesOfOneNameAreAddedUp(t *testing.T) {
	const bound = cache.MinBytes
	for _, tt := range []struct{ name, want string }{{t.Name(), t.Name()}, {"", "(unnamed)"}} {
		var made []*cache.Cache
		for i := range 3 {
			c := cache.New(freehold.Default(), &cache.Options{Name: tt.name, MaxBytes: bound << i})
			made = append(made, c)
			defer c.Close()
			if err := c.Set([]byte("k"), []byte("v")); err != nil {
				t.Fatal(err)
			}
			c.Get(nil, []byte("k"))
		}
		if all := named(Caches(), tt.want); len(all) != 1 || all[0].Len != 3 || all[0].Hits != 3 || all[0].MaxBytes != 7*bound {
			t.Errorf("%q: %+v", tt.name, all)
		}
		made[0].Close()
		if all := named(Caches(), tt.want); len(all) != 1 || all[0].Len != 2 || all[0].MaxBytes != 6*bound {
			t.Errorf("%q after Close: %+v", tt.name, all)
		}
	}
}

// fieldOf returns the field of Stats that a figure reads.
func fieldOf[S any](f Figure[S]) string {
	st, _ := filled[S]()
	var find func(v reflect.Value) string
	find = func(v reflect.Value) string {
		for i := range v.NumField() {
			name, n := v.Type().Field(i).Name, v.Field(i)
			if n.Kind() == reflect.Struct {
				if found := find(n); found != "" {
					return found
				}
			}
			if n.CanInt() && n.Int() == f.Value(&st) || n.CanUint() && n.Uint() == uint64(f.Value(&st)) {
				return name
			}
		}
		return ""
	}
	return find(reflect.ValueOf(st))
}

// lines returns one line for each figure of a list.
func lines[S any](figures []Figure[S]) string {
	var b strings.Builder
	for _, f := range figures {
		kind := map[[2]bool]string{{false, false}: "", {true, false}: " rises", {false, true}: " limit"}[[2]bool{f.Rises, f.Limit}]
		if f.Of != "" {
			kind += " " + f.Of
		}
		fmt.Fprintf(&b, "%s %s %s%s\n", f.Name, f.Unit, fieldOf(f), kind)
		if !strings.HasSuffix(f.Help, ".") {
			fmt.Fprintln(&b, "which is no sentence: ", f.Help)
		}
	}
	return b.String()
}

func TestFigures(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{lines(HeapFigures), `live By LiveBytes
live_blocks {block} Live
large By LargeBytes
large_blocks {block} Large
active By Active
resident By Resident
retained By Retained
metadata By Metadata
committed By Committed
limit By MaxBytes limit
slow_allocs {call} SlowAllocs rises
slow_frees {call} SlowFrees rises
refusals {call} Refusals rises
purged By PurgedBytes rises
guarded {block} Guarded
guards {block} GuardedEver rises
skipped_guards {block} GuardsSkipped rises
`},
		{lines(TagFigures), `live By LiveBytes
live_blocks {block} Live
peak By PeakBytes
allocs {block} Allocs rises
frees {block} Frees rises
`},
		{lines(AccountFigures), `used By Used
live By LiveBytes
live_blocks {block} Live
soft_limit By Soft limit
limit By MaxBytes limit
pressure {level} Level
refusals {call} Refusals rises
evicted By Evicted rises
`},
		{lines(CacheFigures), `entries {entry} Len
live By Live
dead By Dead
index By Index
index_slots {slot} Slots
reserved By Reserved
limit By MaxBytes limit
hits {read} Hits rises
misses {read} Misses rises
undecodable {read} Undecodable rises
loads {key} Loads rises
loads_failed {key} LoadsFailed rises
refreshes {key} Refreshes rises
sets {entry} Sets rises
evictions {entry} Evicted rises room
evictions {entry} Expired rises expired
evictions {entry} Shrunk rises shrunk
copied By Copied rises
`},
		{lines(BudgetFigures), `limit By Limit
headroom By Headroom
off_heap By OffHeap
others By Others
go_held By GoHeld
go_live By GoLive
go_limit By GoLimit
short By Short
pressure {level} Level
wanted By Wanted
adjustments {change} Adjustments rises
reclaims {collection} Reclaims rises
rounds {round} Rounds rises
`},
	} {
		if tt.got != tt.want {
			t.Errorf("\n got %s\nwant %s", tt.got, tt.want)
		}
	}
}
