package metrics

import (
	"reflect"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/budget"
)

// fill sets each number of a struct to another one, from *n on.
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

// wantSums checks each number of a struct: the sum of two others', but for some fields.
func wantSums(t *testing.T, sum, a, b reflect.Value, but ...string) {
	t.Helper()
fields:
	for i := range sum.NumField() {
		name, f := sum.Type().Field(i).Name, sum.Field(i)
		for _, other := range but {
			if name == other {
				continue fields
			}
		}
		switch {
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

// Each figure is added up, also one that nothing but a field has.
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
	if total.Peak != x.Peak || total.Room != x.Room || total.Pressure.Level != y.Pressure.Level {
		t.Errorf("%+v", total)
	}
}
