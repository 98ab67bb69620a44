package cache

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/freehold-go/freehold/alloctest"
)

func newOf[K comparable, V any](t testing.TB, o *OfOptions[K, V]) *Of[K, V] {
	o.MaxBytes = MinBytes
	c := NewOf(alloctest.New(t), o)
	t.Cleanup(c.Close)
	return c
}

// testOf runs all calls with two keys and two values.
func testOf[K comparable, V any](t *testing.T, o *OfOptions[K, V], k, l K, v, w V, equal func(a, b V) bool) {
	c := newOf(t, o)
	want := func(k K, v V) {
		t.Helper()
		if got, ok := c.Get(k); !ok || !equal(got, v) {
			t.Errorf("Get(%v) = %v, %t; want %v", k, got, ok, v)
		}
	}
	must(0, c.Set(k, v))
	must(0, c.SetTTL(l, w, time.Hour))
	want(k, v)
	want(l, w)
	if !c.Delete(k) || c.Delete(k) {
		t.Error("Delete, twice = false, true")
	}
	if _, ok := c.Get(k); ok {
		t.Error("it is still there")
	}
	for range 2 {
		got, err := c.GetOrLoad(t.Context(), k, func(context.Context) (V, error) { return w, nil })
		if err != nil || !equal(got, w) {
			t.Errorf("GetOrLoad = %v, %v", got, err)
		}
	}
	want(k, w)
	failure := errors.New("no")
	c.Delete(k)
	if _, err := c.GetOrLoad(t.Context(), k, func(context.Context) (V, error) { return v, failure }); err != failure {
		t.Errorf("GetOrLoad: %v", err)
	}
}

type person struct {
	Name string
	Tags []string
}

func TestOf(t *testing.T) {
	testOf(t, &OfOptions[string, string]{}, "k", "", "v", "", func(a, b string) bool { return a == b })
	testOf(t, &OfOptions[[2]uint32, []byte]{}, [2]uint32{1, 2}, [2]uint32{1, 3}, []byte("v"), nil,
		func(a, b []byte) bool { return string(a) == string(b) })
	type point struct{ x, y float64 }
	testOf(t, &OfOptions[int, point]{}, 1, -1, point{1, 2}, point{}, func(a, b point) bool { return a == b })
	byJSON := &Codec[person]{
		Append: func(dst []byte, v person) ([]byte, error) {
			b, err := json.Marshal(v)
			return append(dst, b...), err
		},
		Decode: func(b []byte) (v person, err error) { return v, json.Unmarshal(b, &v) },
	}
	testOf(t, &OfOptions[string, person]{Values: byJSON}, "a", "b", person{Name: "A", Tags: []string{"x"}}, person{},
		func(a, b person) bool { return a.Name == b.Name && len(a.Tags) == len(b.Tags) })
}

// TestCodecsFail: an error of a codec is the call's, and what cannot be decoded is not found.
func TestCodecsFail(t *testing.T) {
	failure := errors.New("no")
	c := newOf(t, &OfOptions[string, int]{Values: &Codec[int]{
		Append: func(dst []byte, v int) ([]byte, error) {
			if v < 0 {
				return nil, failure
			}
			return append(dst, byte(v)), nil
		},
		Decode: func([]byte) (int, error) { return 0, failure },
	}})
	if err := c.Set("k", -1); err != failure {
		t.Errorf("Set: %v", err)
	}
	must(0, c.Set("k", 1))
	if _, ok := c.Get("k"); ok {
		t.Error("Get has decoded it")
	}
	if _, err := c.GetOrLoad(t.Context(), "l", func(context.Context) (int, error) { return 1, nil }); err != failure {
		t.Errorf("GetOrLoad: %v", err)
	}
	keys := newOf(t, &OfOptions[int, int]{Keys: &Codec[int]{
		Append: func(dst []byte, k int) ([]byte, error) { return nil, failure },
	}})
	if err := keys.Set(1, 1); err != failure {
		t.Errorf("Set: %v", err)
	}
}
