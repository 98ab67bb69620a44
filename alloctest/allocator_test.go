package alloctest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/internal/arg"
)

func TestNewConforms(t *testing.T) {
	alloctest.TestAllocator(t, func(t *testing.T) freehold.Allocator {
		return alloctest.New(t)
	}, &alloctest.Options{Detects: alloctest.AllMistakes, Concurrent: true})
}

// here begins the names of this package's functions in a stack.
const here = "github.com/freehold-go/freehold/alloctest_test."

func TestLeakIsReported(t *testing.T) {
	wantFailure(t, record(t, func(t testing.TB) {
		a := alloctest.New(t)
		freehold.Must(a.Alloc(24, 8))
		a.Free(freehold.Must(a.Alloc(32, 8)))
	}), "leak of 24 bytes", "allocated at:\n\t\t"+here+"TestLeakIsReported", "allocator_test.go")
}

func TestLeakByTypedFunctionIsReportedWithItsCaller(t *testing.T) {
	wantFailure(t, record(t, func(t testing.TB) {
		a := freehold.NewLimit(alloctest.New(t), 1000)
		freehold.Must(freehold.New[[3]uint64](a))
	}), "leak of 24 bytes", "freehold.(*Limit).Zeroed", "TestLeakByTypedFunction")
}

func TestManyLeaksAreReportedTogether(t *testing.T) {
	failures := record(t, func(t testing.TB) {
		a := alloctest.New(t)
		for range 1000 {
			freehold.Must(a.Alloc(3, 1))
		}
	})
	if last := failures[len(failures)-1]; len(failures) != 1 || !strings.Contains(last, "1000 blocks and 3000 bytes") || !strings.Contains(last, "allocator_test.go") {
		t.Errorf("%d failures, the last one:\n%s", len(failures), last)
	}
	failures = record(t, func(t testing.TB) {
		a := alloctest.New(t)
		var deep func(n int)
		deep = func(n int) {
			if n > 0 {
				deep(n - 1)
			}
			freehold.Must(a.Alloc(3, 1))
		}
		deep(19) // a stack for each block
	})
	if last := failures[len(failures)-1]; len(failures) != 11 || !strings.HasSuffix(last, "leak of 20 blocks and 60 bytes in all") {
		t.Errorf("%d failures, the last one:\n%s", len(failures), last)
	}
}

func TestNoLeakPasses(t *testing.T) {
	failures := record(t, func(t testing.TB) {
		a := alloctest.New(t)
		b := freehold.Must(a.Alloc(100, 64))
		b, _ = a.Resize(b, 10)
		b = freehold.Must(freehold.Realloc(a, b, 1000, 64))
		a.Free(b)
		c := freehold.Must(a.Alloc(100, 64))
		a.Resize(c, 0)
	})
	if len(failures) > 0 {
		t.Errorf("failures: %q", failures)
	}
}

func TestWritesOutsideABlockAreReported(t *testing.T) {
	for _, size := range []int{1, 8, 100, 4096} {
		for _, at := range []int{-64, -1, size, size + 63} {
			for _, free := range []bool{true, false} {
				failures := record(t, func(t testing.TB) {
					a := alloctest.New(t)
					b := freehold.Must(a.Alloc(size, 64))
					poke(b, at)
					if free {
						a.Free(b)
					} else {
						t.Cleanup(func() { a.Free(b) })
					}
				})
				want := fmt.Sprintf("a write %s after the end of a block of %s", arg.Bytes(at-size+1), arg.Bytes(size))
				if at < 0 {
					want = fmt.Sprintf("a write %s before the beginning of a block of %s", arg.Bytes(-at), arg.Bytes(size))
				}
				wantFailure(t, failures, want, "TestWritesOutsideABlockAreReported")
			}
		}
	}
}

func TestWriteBehindAShrunkBlockIsReported(t *testing.T) {
	wantFailure(t, record(t, func(t testing.TB) {
		a := alloctest.New(t)
		b := freehold.Must(a.Alloc(100, 8))
		r, ok := a.Resize(b, 50)
		if !ok {
			t.Fatal("cannot shrink")
		}
		b[50] = 1
		a.Free(r)
	}), "a write 1 byte after the end of a block of 50 bytes")
}

// Resize reports a write behind the block as it was, and the end one to a block that leaks. A
// leak is no failure besides.
func TestWriteBehindABlockThatIsNotFreedIsReported(t *testing.T) {
	for _, resized := range []bool{true, false} {
		wantFailure(t, record(t, func(t testing.TB) {
			a := alloctest.New(t)
			b := freehold.Must(a.Alloc(100, 8))
			poke(b, 100)
			if resized {
				a.Resize(b, 50)
			}
		}), "a write 1 byte after the end of a block of 100 bytes")
	}
}

func TestWriteAfterFreeIsReported(t *testing.T) {
	wantFailure(t, record(t, func(t testing.TB) {
		a := alloctest.New(t)
		b := freehold.Must(a.Alloc(100, 8))
		a.Free(b)
		b[99] = 1
	}), "a write after Free, to byte 99 of a block of 100 bytes", "allocated at:", "freed at:")
}

func TestWriteAfterFreeIsReportedWhenTheBlockLeavesQuarantine(t *testing.T) {
	failures := record(t, func(t testing.TB) {
		a := alloctest.New(t)
		b := freehold.Must(a.Alloc(100, 8))
		a.Free(b)
		b[0] = 1
		for range 2 {
			a.Free(freehold.Must(a.Alloc(40<<20, 8)))
		}
		t.Errorf("the end")
	})
	if len(failures) != 2 || failures[1] != "the end" {
		t.Errorf("failures: %q", failures)
	}
}

func TestContentsAreUndefinedVisibly(t *testing.T) {
	a := alloctest.New(t)
	b := freehold.Must(a.Alloc(8, 8))
	if b[0] != 0xCD || b[7] != 0xCD {
		t.Errorf("fresh: %x", b)
	}
	a.Free(b)
	if b[0] != 0xDB || b[7] != 0xDB {
		t.Errorf("freed: %x", b)
	}
}

func TestMistakesPanicWithStacks(t *testing.T) {
	tests := []struct {
		name string
		call func(a *alloctest.Allocator, b []byte)
		want []string
	}{
		{"double", func(a *alloctest.Allocator, b []byte) { a.Free(b); a.Free(b) }, []string{"Free: 64 bytes", "freed block of 64 bytes", "allocated at:", "freed at:\n\t\t" + here}},
		{"resize after free", func(a *alloctest.Allocator, b []byte) { a.Free(b); a.Resize(b, 8) }, []string{"Resize: 64 bytes", "freed at:"}},
		{"old slice after resize", func(a *alloctest.Allocator, b []byte) { a.Resize(b, 8); a.Free(b) }, []string{"at byte 0 of a block of 8 bytes"}},
		{"interior", func(a *alloctest.Allocator, b []byte) { a.Free(b[1:]) }, []string{"at byte 1 of a block of 64 bytes", "allocated at:"}},
		{"short", func(a *alloctest.Allocator, b []byte) { a.Free(b[:63]) }, []string{"Free: 63 bytes", "at byte 0 of a block of 64 bytes"}},
		{"emptied", func(a *alloctest.Allocator, b []byte) { a.Free(b[:0]) }, []string{"Free: 0 bytes", "at byte 0 of a block of 64 bytes"}},
		{"resize of an emptied", func(a *alloctest.Allocator, b []byte) { a.Resize(b[:0], 0) }, []string{"Resize: 0 bytes", "at byte 0 of a block of 64 bytes"}},
		{"foreign", func(a *alloctest.Allocator, b []byte) { a.Free(make([]byte, 9)) }, []string{"Free: 9 bytes", "which this allocator did not hand out", "was it moved by append?"}},
	}
	for _, c := range tests {
		failures := record(t, func(t testing.TB) {
			a := alloctest.New(t)
			b := freehold.Must(a.Alloc(64, 8))
			defer func() {
				if r := recover(); r != nil {
					t.Errorf("%v", r)
				}
				if a.Owns(b) {
					r, _ := a.Resize(b[:8], 0) // the old slice is stale
					_ = r
				}
			}()
			c.call(a, b)
		})
		if len(failures) == 0 {
			t.Errorf("%s: no panic", c.name)
			continue
		}
		for _, part := range append(c.want, "freehold: alloctest.Allocator.") {
			if !strings.Contains(failures[0], part) {
				t.Errorf("%s: the panic does not say %q:\n%s", c.name, part, failures[0])
			}
		}
	}
}

func TestOutOfMemoryBeyondTheBounds(t *testing.T) {
	a := alloctest.New(t)
	if _, err := a.Alloc(1<<28+1, 1); err == nil || !strings.Contains(err.Error(), "alloctest gives no block of 268435457 bytes") {
		t.Errorf("error %v", err)
	}
}

// poke changes a byte, inside or outside of b.
func poke(b []byte, at int) { *outside(b, at)++ }
