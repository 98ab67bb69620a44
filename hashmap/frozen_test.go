package hashmap

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"iter"
	"maps"
	"math"
	"math/bits"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/buffer"
	"github.com/freehold-go/freehold/internal/owners"
	"github.com/freehold-go/freehold/internal/panics"
	"github.com/freehold-go/freehold/internal/test/child"
	"github.com/freehold-go/freehold/internal/test/filetest"
	"github.com/freehold-go/freehold/internal/vm"
)

// openFrozen opens a frozen map until the test ends. It skips the test on systems without mapped
// files.
func openFrozen[K comparable, V any](t testing.TB, path string) *Frozen[K, V] {
	t.Helper()
	f, err := OpenFrozen[K, V](path)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	filetest.Must(t, err)
	t.Cleanup(func() { filetest.Must(t, f.Close()) })
	return f
}

// frozenModel tests that a frozen map of n entries has what the map has.
func frozenModel[K comparable, V any](t *testing.T, n int, key func(i int) K, value func(i int) V) {
	t.Run(fmt.Sprintf("%v to %v, %d entries", reflect.TypeFor[K](), reflect.TypeFor[V](), n), func(t *testing.T) {
		path := filepath.Join(filetest.TempDir(t), "frozen")
		m := New[K, V](alloctest.New(t), nil)
		defer m.Close()
		for i := range n {
			filetest.Must(t, m.Put(key(2*i), value(i)))
		}
		filetest.Must(t, Freeze(m.All(), path))
		f := openFrozen[K, V](t, path)
		if f.Len() != m.Len() {
			t.Errorf("%d entries, want %d", f.Len(), m.Len())
		}
		for i := range 2 * n {
			k := key(i)
			want, has := m.Get(k)
			got, ok, err := f.Get(k)
			if ok != has || err != nil || !sameValue(got, want) {
				t.Fatalf("Get(%v) is %v, %t, %v, want %v, %t", k, got, ok, err, want, has)
			}
			calls := 0
			ok, err = f.View(k, func(v V) {
				calls++
				if !sameValue(v, want) {
					t.Fatalf("View(%v) has %v, want %v", k, v, want)
				}
			})
			if ok != has || err != nil || calls == 1 != has {
				t.Fatalf("View(%v) is %t, %v, with %d calls, want %t", k, ok, err, calls, has)
			}
		}
		seen := New[K, V](alloctest.New(t), nil)
		defer seen.Close()
		filetest.Must(t, f.Verify(), f.Each(func(k K, v V) bool {
			if want, ok := m.Get(k); !ok || !sameValue(v, want) {
				t.Errorf("Each has %v and %v, want %v", k, v, want)
			}
			filetest.Must(t, seen.Put(k, v))
			return true
		}))
		calls := 0
		filetest.Must(t, f.Each(func(K, V) bool { calls++; return false }))
		if seen.Len() != m.Len() || calls != min(n, 1) {
			t.Errorf("Each has %d entries, want %d, and went on %d times", seen.Len(), m.Len(), calls)
		}
	})
}

// sameValue reports whether values are equal. All empty bytes are.
func sameValue[V any](a, b V) bool {
	if x, ok := any(a).([]byte); ok {
		return bytes.Equal(x, any(b).([]byte))
	}
	return reflect.DeepEqual(a, b)
}

// textOfLen returns a text of n bytes that begins with i, if it has room.
func textOfLen(i, n int) string { return (fmt.Sprint(i, " ") + strings.Repeat("x", n))[:max(n, 0)] }

type pointOf struct {
	X, Y int16
	Z    uint32
}

type thousand [1000]uint16

func TestFrozenHasTheMap(t *testing.T) {
	numbers := func(i int) uint64 { return uint64(i) * 0x9E3779B97F4A7C15 }
	words := func(i int) string { return fmt.Sprint(i, strings.Repeat("k", i%200)) }
	for _, n := range []int{0, 1, 2, 5, 127, 10_000} {
		frozenModel(t, n, numbers, numbers)
		frozenModel(t, n, words, words)
		frozenModel(t, n, words, func(i int) float64 { return float64(i) / 3 })
		frozenModel(t, n, func(i int) pointOf { return pointOf{int16(i), -int16(i), 7} }, func(i int) []byte { return []byte(textOfLen(i, i%5000)) })
	}
	frozenModel(t, 128, func(i int) uint8 { return uint8(i) }, func(i int) thousand { return thousand{uint16(i), 999: uint16(i)} })
	frozenModel(t, 1, func(i int) bool { return i == 1 }, func(int) struct{} { return struct{}{} })
	frozenModel(t, 1, func(int) struct{} { return struct{}{} }, func(int) struct{} { return struct{}{} })
	frozenModel(t, 1, func(int) [0]byte { return [0]byte{} }, func(int) string { return "" })
	frozenModel(t, 3, func(i int) string { return strings.Repeat("k", i<<20) }, func(i int) string { return strings.Repeat("v", i<<20) })
	frozenModel(t, 300, func(i int) [24]uint16 { return [24]uint16{23: uint16(i)} }, func(i int) [3]byte { return [3]byte{2: byte(i)} })
}

// More entries than stay in memory while they are sorted.
func TestFreezeSpills(t *testing.T) {
	value := strings.Repeat("v", 1<<10)
	const n = freezeMemory>>10 + 5000
	path := filepath.Join(filetest.TempDir(t), "frozen")
	live := func() int { return freehold.Default().Stats().LiveBytes }
	before, most := live(), 0
	filetest.Must(t, Freeze(func(yield func(uint32, string) bool) {
		for i := range uint32(n) {
			if !yield(i, value) {
				return
			}
		}
		most = live()
	}, path))
	f := openFrozen[uint32, string](t, path)
	filetest.Must(t, f.Verify())
	if most > before+freezeMemory {
		t.Errorf("Freeze takes %d bytes", most-before)
	}
	for i := range uint32(n) {
		if v, ok, err := f.Get(i); v != value || !ok || err != nil {
			t.Fatalf("%d is %.20q, %t, %v", i, v, ok, err)
		}
	}
	wantFiles(t, path)
}

// wantFiles checks that a directory has these files and no others.
func wantFiles(t *testing.T, path string) {
	t.Helper()
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 || entries[0].Name() != filepath.Base(path) {
		t.Errorf("%v, %v, want %s alone", entries, err, path)
	}
}

// smallFrozen writes a map of texts to path and returns it.
func smallFrozen(t testing.TB, path string) map[string]string {
	t.Helper()
	m := map[string]string{}
	for i := range 60 {
		m[fmt.Sprint("key ", i, strings.Repeat("k", i))] = textOfLen(i, 2*i)
	}
	filetest.Must(t, Freeze(maps.All(m), path))
	return m
}

// wantTruth reads a whole file, whatever it has. Each call must return the map's entries or an
// error. It returns the first error.
func wantTruth(t testing.TB, path string, m map[string]string) error {
	t.Helper()
	f, err := OpenFrozen[string, string](path)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	for k, want := range m {
		got, ok, err2 := f.Get(k)
		if err2 == nil && (!ok || got != want) {
			t.Errorf("Get(%q) is %q, %t, want %q", k, got, ok, want)
		}
		if _, ok, err3 := f.Get(k + "?"); err3 == nil && ok {
			t.Errorf("Get has %q", k+"?")
		}
		err = errors.Join(err, err2)
	}
	n := 0
	err = errors.Join(err, f.Each(func(k, v string) bool {
		if n++; m[k] != v {
			t.Errorf("Each has %q and %q, want %q", k, v, m[k])
		}
		return true
	}))
	if verified := f.Verify(); err == nil {
		if err = verified; n != len(m) || f.Len() != len(m) {
			t.Errorf("Each has %d entries, and Len is %d, want %d", n, f.Len(), len(m))
		}
	} else if verified == nil {
		t.Errorf("Verify finds nothing, and another call %v", err)
	}
	return err
}

// step is the distance of the bytes that a test changes.
func step() int {
	if testing.Short() {
		return 7
	}
	return 1
}

// A change of any byte of the file is found.
func TestFrozenFlippedBytes(t *testing.T) {
	path := filepath.Join(filetest.TempDir(t), "frozen")
	m := smallFrozen(t, path)
	filetest.Must(t, wantTruth(t, path, m))
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	filetest.Must(t, err)
	defer file.Close()
	size := freehold.Must(file.Stat()).Size()
	one := make([]byte, 1)
	for at := int64(0); at < size; at += int64(step()) {
		freehold.Must(file.ReadAt(one, at))
		was := one[0]
		for _, flip := range []byte{1 << (at % 8), 0xFF} {
			freehold.Must(file.WriteAt([]byte{was ^ flip}, at))
			if err := wantTruth(t, path, m); !errors.Is(err, ErrCorrupt) {
				t.Errorf("byte %d of %d, %#x: %v", at, size, flip, err)
			}
		}
		freehold.Must(file.WriteAt([]byte{was}, at))
	}
	filetest.Must(t, wantTruth(t, path, m))
}

func TestFrozenOfAnotherLength(t *testing.T) {
	path := filepath.Join(filetest.TempDir(t), "frozen")
	m := smallFrozen(t, path)
	data := freehold.Must(os.ReadFile(path))
	filetest.Must(t, os.WriteFile(path, append(slices.Clone(data), 0), 0o600))
	if err := wantTruth(t, path, m); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a byte more: %v", err)
	}
	for n := len(data) - 1; n >= 0; n-- {
		filetest.Must(t, os.Truncate(path, int64(n)))
		if err := wantTruth(t, path, m); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%d of %d bytes: %v", n, len(data), err)
		}
	}
}

// A file that is truncated while it is open gives errors, and no faults.
func TestFrozenTruncatedWhileOpen(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows truncates no mapped file")
	}
	path := filepath.Join(filetest.TempDir(t), "frozen")
	value := strings.Repeat("v", 64<<10)
	filetest.Must(t, Freeze(maps.All(map[string]string{"a": value, "b": value, "c": value}), path))
	for _, read := range []bool{false, true} {
		f := openFrozen[string, string](t, path)
		if read {
			filetest.Must(t, f.Verify())
		}
		var ends bool
		ok, inView := f.View("a", func(v string) {
			filetest.Must(t, os.Truncate(path, frozenBlock))
			strings.Count(v, "v")
			ends = true
		})
		if ok || ends {
			t.Errorf("View is %t, and its function went on: %t", ok, ends)
		}
		_, _, inGet := f.Get("b")
		for name, err := range map[string]error{
			"View": inView, "Get": inGet, "Verify": f.Verify(), "Each": f.Each(func(_, _ string) bool { return true }),
		} {
			if !errors.Is(err, ErrCorrupt) || !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(fmt.Sprint(err), path) {
				t.Errorf("%s: %v", name, err)
			}
		}
		filetest.Must(t, Freeze(maps.All(map[string]string{"a": value, "b": value, "c": value}), path))
	}
}

// reseal gives data right checksums, as somebody could who forges a file.
func reseal(data []byte) {
	blocks := len(data) / (frozenBlock + 4)
	if len(data) < 2*frozenBlock || blocks == 0 {
		return
	}
	id := binary.LittleEndian.Uint32(data[40:])
	for b := range blocks {
		sum := crc32.Update(id+uint32(b), castagnoli, data[b*frozenBlock:][:frozenBlock])
		binary.LittleEndian.PutUint32(data[blocks*frozenBlock+4*b:], sum)
	}
}

// readAny calls everything for a file. Nothing may panic or fault.
func readAny[K comparable, V any](t testing.TB, path string, keys ...K) {
	f, err := OpenFrozen[K, V](path)
	if err != nil {
		return
	}
	defer f.Close()
	for _, k := range keys {
		f.Get(k)
		f.View(k, func(v V) { _ = fmt.Sprint(v) })
	}
	f.Each(func(k K, v V) bool { _ = fmt.Sprint(k, v); return true })
	f.Verify()
}

// FuzzOpenFrozen reads forged files. Text says which types a file has.
func FuzzOpenFrozen(f *testing.F) {
	path := filepath.Join(filetest.TempDir(f), "frozen")
	seed := func(text bool) {
		data := freehold.Must(os.ReadFile(path))
		f.Add(data, text, 4100, uint64(1)<<40)
	}
	smallFrozen(f, path)
	seed(true)
	filetest.Must(f, Freeze(maps.All(map[uint64]uint64{1: 1, 2: 2, 3: 3, 100: 100, 101: 101}), path))
	seed(false)
	f.Fuzz(func(t *testing.T, data []byte, text bool, at int, number uint64) {
		if at >= 0 && at <= len(data)-8 {
			binary.LittleEndian.PutUint64(data[at:], number)
		}
		reseal(data)
		path := filepath.Join(filetest.TempDir(t), "frozen")
		filetest.Must(t, os.WriteFile(path, data, 0o600))
		if text {
			readAny[string, string](t, path, "key 0", "key 1k", "")
		} else {
			readAny[uint64, uint64](t, path, 1, 2, 3, 4)
		}
	})
}

// Any number in any place of a file with right checksums causes no panic. This is the fuzzer's
// function, with numbers that are likely to be mistaken.
func TestForgedFrozen(t *testing.T) {
	path := filepath.Join(filetest.TempDir(t), "frozen")
	numbers := []uint64{0, 1, 255, 1 << 31, 1<<63 - 1, 1<<64 - 1, 1<<64 - frozenBlock}
	// Heads of 12 bytes: the lengths 1 and 2^64-1, whose sum is 0.
	wraps := binary.AppendUvarint([]byte{12, 0, 1}, math.MaxUint64)
	try := func(read func()) {
		data := freehold.Must(os.ReadFile(path))
		forgeBytes := func(at int, text []byte) {
			forged := slices.Clone(data)
			copy(forged[at:], text)
			reseal(forged)
			filetest.Must(t, os.WriteFile(path, forged, 0o600))
			read()
		}
		forge := func(at int, number uint64) { forgeBytes(at, binary.LittleEndian.AppendUint64(nil, number)) }
		buckets := int(binary.LittleEndian.Uint64(data[24:]))
		for _, number := range append(numbers, uint64(len(data))) {
			for at := 16; at < frozenTypesAt; at += 8 {
				forge(at, number)
			}
			for at := frozenBlock; at <= frozenBlock+8*buckets; at += 8 {
				forge(at, number)
			}
		}
		from := int(dataOffset(uint64(buckets)))
		end := from + int(binary.LittleEndian.Uint64(data[32:]))
		for at := from; at < end; at += step() {
			forge(at, numbers[at%len(numbers)])
			forgeBytes(at, wraps)
		}
	}
	smallFrozen(t, path)
	try(func() { readAny[string, string](t, path, "key 0", "key 1k", "") })
	filetest.Must(t, Freeze(maps.All(map[uint64]uint64{1: 1, 2: 2, 3: 3, 100: 100, 101: 101}), path))
	try(func() { readAny[uint64, uint64](t, path, 1, 2, 3, 4) })
}

// Numbers that no header has are refused, even with right checksums.
func TestForgedFrozenHeader(t *testing.T) {
	path := filepath.Join(filetest.TempDir(t), "frozen")
	smallFrozen(t, path)
	data := freehold.Must(os.ReadFile(path))
	for _, tt := range []struct {
		what   string
		at     int
		number uint64
	}{
		{"another version", 8, binary.LittleEndian.Uint64(data[8:]) + 1},
		{"more entries than bytes", 16, uint64(len(data)) + 1},
		{"no buckets", 24, 0},
		{"as many bytes of starts, modulo 2^64", 24, binary.LittleEndian.Uint64(data[24:]) + 1<<61},
		{"more data than bytes", 32, 1<<64 - 1},
	} {
		forged := slices.Clone(data)
		binary.LittleEndian.PutUint64(forged[tt.at:], tt.number)
		reseal(forged)
		filetest.Must(t, os.WriteFile(path, forged, 0o600))
		if f, err := OpenFrozen[string, string](path); errors.Is(err, errors.ErrUnsupported) {
			t.Skip(err)
		} else if !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", tt.what, err)
			if err == nil {
				f.Close()
			}
		}
	}
}

// Each calls its function with no key of a wrong length.
func TestForgedFrozenKey(t *testing.T) {
	path := filepath.Join(filetest.TempDir(t), "frozen")
	filetest.Must(t, Freeze(maps.All(map[uint64]string{1: "v"}), path))
	data := freehold.Must(os.ReadFile(path))
	head := data[dataOffset(1)+2:] // after the size of heads and the tag
	if head[0], head[1] = head[0]-1, head[1]+1; head[0] != 7 || head[1] != 2 {
		t.Fatalf("the lengths are %d and %d", head[0], head[1])
	}
	reseal(data)
	filetest.Must(t, os.WriteFile(path, data, 0o600))
	err := openFrozen[uint64, string](t, path).Each(func(k uint64, v string) bool {
		t.Errorf("Each has %d and %q", k, v)
		return true
	})
	if !errors.Is(err, ErrCorrupt) {
		t.Error(err)
	}
}

func TestFrozenOfOtherTypes(t *testing.T) {
	path := filepath.Join(filetest.TempDir(t), "frozen")
	type point struct {
		X, Y int16
		Z    uint32
	}
	type swapped struct {
		Y, X int16
		Z    uint32
	}
	type id uint32
	filetest.Must(t, Freeze(maps.All(map[uint32]pointOf{1: {2, 3, 4}}), path))
	f := openFrozen[id, point](t, path)
	if v, ok, err := f.Get(1); v != (point{2, 3, 4}) || !ok || err != nil {
		t.Errorf("types of other names: %v, %t, %v", v, ok, err)
	}
	_, other := OpenFrozen[uint32, swapped](path)
	_, signed := OpenFrozen[int32, point](path)
	_, text := OpenFrozen[string, point](path)
	for _, err := range []error{other, signed, text} {
		if err == nil || errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "it maps uint32 to struct of 8 B{X at 0 int16;Y at 2 int16;Z at 4 uint32;}, want ") {
			t.Error(err)
		}
	}
	filetest.Must(t, f.Close()) // Windows replaces no mapped file
	data := freehold.Must(os.ReadFile(path))
	slices.Reverse(data[12:16])
	reseal(data)
	filetest.Must(t, os.WriteFile(path, data, 0o600))
	if _, err := OpenFrozen[uint32, point](path); err == nil || errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "other byte order") {
		t.Error(err)
	}

	type long struct {
		F1, F2, F3, F4 struct {
			F1, F2, F3, F4 struct {
				F1, F2, F3, F4 struct{ F1, F2, F3, F4 [2]int64 }
			}
		}
	}
	filetest.Must(t, Freeze(maps.All(map[uint32]long{1: {}}), path))
	openFrozen[uint32, long](t, path)
	if _, err := OpenFrozen[uint64, long](path); err == nil || !strings.Contains(err.Error(), "it maps types with the hash") {
		t.Error(err)
	}
}

// A Freeze that fails leaves the old file and no other.
func TestFreezeFails(t *testing.T) {
	path := filepath.Join(filetest.TempDir(t), "frozen")
	m := smallFrozen(t, path)
	twice := func(yield func(string, string) bool) {
		for i := 0; i < 1000 && yield(fmt.Sprint(i%999), ""); i++ {
		}
	}
	for _, tt := range []struct {
		path, want string
		entries    iter.Seq2[string, string]
	}{
		{path, path + `: the key "0" comes twice`, twice},
		{filepath.Dir(path), "is a directory", maps.All(m)},
		{filepath.Join(path, "x"), path, maps.All(m)},
		{filepath.Join(filepath.Dir(path), "none", "x"), "no such file", maps.All(m)},
		{os.DevNull, "not a regular file that can be replaced", maps.All(m)},
	} {
		if err := Freeze(tt.entries, tt.path); err == nil || runtime.GOOS != "windows" && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", tt.path, err, tt.want)
		}
	}
	panics.Want(t, "stop", func() { Freeze(func(func(string, string) bool) { panic("stop") }, path) })
	filetest.Must(t, wantTruth(t, path, m))
	wantFiles(t, path)
}

// Freeze syncs the file and then its directory. If only the directory cannot be synced, the path has
// the new file.
func TestFreezeSyncs(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skip("directories are not synced")
	}
	path := filepath.Join(filetest.TempDir(t), "frozen")
	for failing := range 3 { // the sync that fails; the last round has only two
		m := smallFrozen(t, path)
		syncs := 0
		restore := vm.SetFault(func(op vm.Op) error {
			if op == vm.OpSyncFile {
				if syncs++; syncs == failing+1 {
					return errors.ErrUnsupported
				}
			}
			return nil
		})
		err := Freeze(maps.All(map[string]string{"new": "new"}), path)
		restore()
		if failing > 0 {
			m = map[string]string{"new": "new"}
		}
		if syncs != min(failing+1, 2) || errors.Is(err, errors.ErrUnsupported) != (failing < 2) {
			t.Errorf("%d syncs: %v", syncs, err)
		}
		filetest.Must(t, wantTruth(t, path, m))
	}
}

func TestFrozenMisuse(t *testing.T) {
	path := filepath.Join(filetest.TempDir(t), "frozen")
	panics.Want(t, "freehold: hashmap.Freeze: K=float64, want string, or ...", func() { Freeze(maps.All(map[float64]int{}), path) })
	panics.Want(t, "freehold: hashmap.Freeze[V=*int]: ...", func() { Freeze(maps.All(map[int]*int{}), path) })
	panics.Want(t, "freehold: hashmap.OpenFrozen: K=struct {...", func() {
		OpenFrozen[struct {
			A uint8
			B uint16
		}, int](path)
	})
	if _, err := OpenFrozen[int, int](path); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if _, err := OpenFrozen[int, int](filepath.Dir(path)); !errors.Is(err, ErrCorrupt) {
		t.Error(err)
	}
	filetest.Must(t, Freeze(maps.All(map[int]int{1: 1}), path))
	f := openFrozen[int, int](t, path)
	filetest.Must(t, f.Close(), f.Close())
	var zero Frozen[int, int]
	filetest.Must(t, zero.Close())
	if f.Len() != 1 || zero.Len() != 0 {
		t.Error(f.Len(), zero.Len())
	}
	for name, call := range map[string]func(*Frozen[int, int]){
		"Get":    func(f *Frozen[int, int]) { f.Get(1) },
		"View":   func(f *Frozen[int, int]) { f.View(1, nil) },
		"Each":   func(f *Frozen[int, int]) { f.Each(nil) },
		"Verify": func(f *Frozen[int, int]) { f.Verify() },
	} {
		panics.Want(t, "freehold: hashmap.Frozen."+name+": the map is closed", func() { call(f) })
		panics.Want(t, "freehold: hashmap.Frozen."+name+": zero value: hashmap.OpenFrozen makes one", func() { call(&zero) })
	}
}

// A panic of a caller's function passes, and so does a fault that is not in the file.
func TestFrozenPassesPanics(t *testing.T) {
	path := filepath.Join(filetest.TempDir(t), "frozen")
	filetest.Must(t, Freeze(maps.All(map[string]string{"a": "b"}), path))
	f := openFrozen[string, string](t, path)
	panics.Want(t, "stop", func() { f.View("a", func(string) { panic("stop") }) })
	panics.Want(t, "stop", func() { f.Each(func(_, _ string) bool { panic("stop") }) })
	panics.Want(t, "runtime.errorAddressString: ...", func() { f.View("a", func(string) { _ = string(bytesAt(1<<12, 1)) + "x" }) })
}

// A write to the file's memory is an error that says so, in a View of another map's View too. The
// file is as before.
func TestWriteToFrozen(t *testing.T) {
	dir := filetest.TempDir(t)
	path := filepath.Join(dir, "frozen")
	m := map[string][]byte{"a": []byte("b")}
	filetest.Must(t, Freeze(maps.All(m), path), Freeze(maps.All(m), filepath.Join(dir, "other")))
	f, other := openFrozen[string, []byte](t, path), openFrozen[string, []byte](t, filepath.Join(dir, "other"))
	var inner error
	_, outer := f.View("a", func(v []byte) {
		_, inner = other.View("a", func([]byte) { v[0] = 'c' })
	})
	for name, err := range map[string]error{
		"View in a View": outer,
		"Each":           f.Each(func(_ string, v []byte) bool { v[0] = 'c'; return true }),
	} {
		if !errors.Is(err, fs.ErrPermission) || errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), path+": a write to byte ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if v, ok, err := f.Get("a"); string(v) != "b" || !ok || err != nil || inner != nil {
		t.Error(v, ok, err, inner)
	}
}

func TestDroppedFrozen(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows removes no directory with a file that is mapped, as the dropped one is")
	}
	path := filepath.Join(filetest.TempDir(t), "frozen")
	filetest.Must(t, Freeze(maps.All(map[string]string{"a": "b"}), path))
	var out strings.Builder
	defer owners.WatchTo(&out)()
	filetest.Must(t, openFrozen[string, string](t, path).Close())
	if open := owners.Open("hashmap.Frozen"); len(open) > 0 {
		t.Errorf("after Close %v is open", open)
	}
	done := make(chan bool)
	go func() {
		defer close(done)
		if f, err := OpenFrozen[string, string](path); err == nil {
			f.Len()
			done <- true
		}
	}()
	if !<-done {
		t.Skip("no mapped files")
	}
	<-done
	owners.Collect()
	if !strings.Contains(out.String(), "hashmap.Frozen") {
		t.Errorf("the report is %q", out.String())
	}
}

// A process that is killed while it freezes leaves the old file or the new one, and no other.
func TestFreezeKilled(t *testing.T) {
	const variable = "FREEHOLD_FREEZE_KILLED"
	const n = 20_000
	if path := os.Getenv(variable); path != "" {
		for version := uint64(1); ; version++ {
			filetest.Must(t, Freeze(func(yield func(uint64, uint64) bool) {
				for i := uint64(0); i < n && yield(i, version); i++ {
				}
			}, path))
			fmt.Println("version", version)
		}
	}
	child.Need(t)
	path := filepath.Join(filetest.TempDir(t), "frozen")
	for kill := range 10 {
		cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), variable+"="+path)
		out := freehold.Must(cmd.StdoutPipe())
		filetest.Must(t, cmd.Start())
		lines := bufio.NewScanner(out)
		said, last := 0, 0
		for ; said <= kill%3 && lines.Scan(); said++ {
			fmt.Sscanf(lines.Text(), "version %d", &last)
		}
		filetest.Must(t, cmd.Process.Kill())
		for lines.Scan() {
			fmt.Sscanf(lines.Text(), "version %d", &last)
		}
		_ = cmd.Wait()
		f, err := OpenFrozen[uint64, uint64](path)
		filetest.Must(t, err)
		version, ok, err := f.Get(0)
		if !ok || err != nil || version != uint64(last) && version != uint64(last)+1 || f.Len() != n {
			t.Errorf("version %d, %t, %v, after %d was written, with %d entries", version, ok, err, last, f.Len())
		}
		filetest.Must(t, f.Each(func(k, v uint64) bool {
			if v != version {
				t.Errorf("%d has version %d, want %d", k, v, version)
			}
			return true
		}), f.Verify(), f.Close())
	}
}

func TestFrozenReadersBesideVerify(t *testing.T) {
	path := filepath.Join(filetest.TempDir(t), "frozen")
	const n = 20_000
	filetest.Must(t, Freeze(func(yield func(uint64, string) bool) {
		for i := uint64(0); i < n && yield(i, fmt.Sprint(i)); i++ {
		}
	}, path))
	f := openFrozen[uint64, string](t, path)
	var wg sync.WaitGroup
	for g := range uint64(8) {
		wg.Go(func() {
			for i := range uint64(n) {
				if v, ok, err := f.Get(i ^ g); err != nil || ok && v != fmt.Sprint(i^g) || ok != (i^g < n) {
					t.Errorf("%d: %q, %t, %v", i^g, v, ok, err)
					return
				}
			}
			if g%4 == 0 {
				if err := f.Verify(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func TestFrozenAllocates(t *testing.T) {
	path := filepath.Join(filetest.TempDir(t), "frozen")
	filetest.Must(t, Freeze(maps.All(map[uint64]uint64{1: 2}), path))
	f := openFrozen[uint64, uint64](t, path)
	if n := testing.AllocsPerRun(100, func() { f.Get(1); f.Get(2) }); n != 0 {
		t.Errorf("Get allocates %v times", n)
	}
	filetest.Must(t, Freeze(maps.All(map[string]string{"a": "b"}), path+"2"))
	g := openFrozen[string, string](t, path+"2")
	size := 0
	key := []byte("a")
	if n := testing.AllocsPerRun(100, func() {
		ViewFrozenBytes(g, key, func(v string) { size += len(v) })
	}); n != 0 {
		t.Errorf("View allocates %v times", n)
	}
	if v, ok, err := GetFrozenBytes(g, key); v != "b" || !ok || err != nil || size == 0 {
		t.Error(v, ok, err, size)
	}
}

func BenchmarkFrozen(b *testing.B) {
	path := filepath.Join(filetest.TempDir(b), "frozen")
	for _, n := range []uint64{10_000, 1_000_000} {
		filetest.Must(b, Freeze(func(yield func(uint64, uint64) bool) {
			for i := uint64(0); i < n && yield(i*7, i); i++ {
			}
		}, path))
		f := openFrozen[uint64, uint64](b, path)
		filetest.Must(b, f.Verify())
		b.Run(fmt.Sprintf("entries=%d", n), func(b *testing.B) {
			i := uint64(0)
			for b.Loop() {
				i = (i*5 + 1) % n
				f.Get(i * 7)
			}
		})
	}
}

// A call has no value of a wrong length, and calls no function with one.
func TestForgedFrozenValue(t *testing.T) {
	type large [300]byte
	path := filepath.Join(filetest.TempDir(t), "frozen")
	filetest.Must(t, Freeze(maps.All(map[uint64]large{1: {}}), path))
	data := freehold.Must(os.ReadFile(path))
	head := data[dataOffset(1)+3:] // after the size of heads, the tag and the length of the key
	if head[0]--; head[0] != 299&0x7F|0x80 {
		t.Fatalf("the length of the value begins with %d", head[0])
	}
	reseal(data)
	filetest.Must(t, os.WriteFile(path, data, 0o600))
	f := openFrozen[uint64, large](t, path)
	_, got, err := f.Get(1)
	viewed, err2 := f.View(1, func(large) { t.Error("View calls its function") })
	err3 := f.Each(func(uint64, large) bool { t.Error("Each calls its function"); return true })
	if got || viewed || !errors.Is(err, ErrCorrupt) || !errors.Is(err2, ErrCorrupt) || !errors.Is(err3, ErrCorrupt) {
		t.Errorf("Get %t, %v; View %t, %v; Each %v", got, err, viewed, err2, err3)
	}
}

// Types are described by their layout: an int, a uint and a uintptr by their size, an array by its
// length.
func TestDescribe(t *testing.T) {
	n := bits.UintSize
	for _, test := range []struct {
		got  frozenTypes
		want string
	}{
		{frozenTypesOf[int, uint](""), fmt.Sprintf("int%d to uint%d", n, n)},
		{frozenTypesOf[uintptr, [3][2]bool](""), fmt.Sprintf("uint%d to [3][2]bool", n)},
		{frozenTypesOf[string, []byte](""), "string to bytes"},
	} {
		if test.got.text != test.want {
			t.Errorf("%s, want %s", test.got.text, test.want)
		}
	}
}

// at returns no byte of the checksums, and verifies the blocks that it returns, no others.
func TestFrozenAt(t *testing.T) {
	path := filepath.Join(filetest.TempDir(t), "frozen")
	smallFrozen(t, path)
	f := openFrozen[string, string](t, path)
	for _, test := range []struct {
		offset, n uint64
		ok        bool
	}{
		{f.sums, 0, true}, {f.sums, 1, false}, {f.sums + 1, 0, false}, {f.sums - 1, 2, false},
		{1, math.MaxUint64, false}, {f.sums - 1, 1, true}, {0, f.sums, true},
	} {
		if b, err := f.at(test.offset, test.n); (err == nil) != test.ok || test.ok && uint64(len(b)) != test.n {
			t.Errorf("%d bytes at %d: %d bytes, %v", test.n, test.offset, len(b), err)
		}
	}
	mapped := f.mem
	defer func() { f.mem = mapped }()
	f.mem = make([]byte, len(mapped)) // for which no checksum is right
	if _, err := f.at(0, f.sums); err != nil {
		t.Error("a block is verified twice:", err)
	}
}

// Buckets whose offsets or heads exceed their bounds are refused, even with right checksums. A bucket
// of a few bytes at the end of the data is not.
func TestForgedFrozenBuckets(t *testing.T) {
	path := filepath.Join(filetest.TempDir(t), "frozen")
	m := map[string]string{"k": strings.Repeat("v", frozenBlock-6)} // a bucket of one block
	filetest.Must(t, Freeze(maps.All(m), path))
	data := freehold.Must(os.ReadFile(path))
	from := int(dataOffset(1))
	starts := func(from, to uint64) []byte {
		return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, from), to)
	}
	for _, test := range []struct {
		what   string
		starts []byte
		at     int
		head   []byte
		ok     bool
	}{
		{"as written", starts(0, frozenBlock), from, nil, true},
		{"the last bytes", starts(frozenBlock-5, frozenBlock), from + frozenBlock - 5, []byte{3, 0, 1, 0}, true},
		{"it ends before it begins", starts(8, 0), from, nil, false},
		{"it ends behind the data", starts(0, frozenBlock+1), from, nil, false},
		{"its size of heads has no end", starts(0, frozenBlock), from, bytes.Repeat([]byte{0xFF}, 10), false},
		{"its heads end behind it", starts(0, 5), from, []byte{5}, false},
	} {
		forged := slices.Clone(data)
		copy(forged[frozenBlock:], test.starts)
		copy(forged[test.at:], test.head)
		reseal(forged)
		filetest.Must(t, os.WriteFile(path, forged, 0o600))
		f := openFrozen[string, string](t, path)
		if _, err := f.bucket(0); (err == nil) != test.ok || !test.ok && !errors.Is(err, ErrCorrupt) || f.dataBytes != frozenBlock {
			t.Errorf("%s: %v; %d bytes of data", test.what, err, f.dataBytes)
		}
		filetest.Must(t, f.Close())
	}
}

// The error of each write of the file is returned: of the starts, the data and the header.
func TestFreezeWriteErrors(t *testing.T) {
	buf := buffer.New(freehold.Default(), nil)
	defer buf.Close()
	records := freehold.Must(buffer.NewRecords(buf, nil))
	types := frozenTypesOf[uint64, uint64]("")
	for failing := range 4 { // the last round has no such write
		file := &failingWriter{failing: failing}
		if err := types.write(records, file); errors.Is(err, io.ErrShortWrite) != (failing < 3) || file.writes != 3 && failing == 3 {
			t.Errorf("write %d of %d fails: %v", failing, file.writes, err)
		}
	}
}

type failingWriter struct{ writes, failing int }

func (w *failingWriter) WriteAt(p []byte, _ int64) (int, error) {
	if w.writes++; w.writes == w.failing+1 {
		return 0, io.ErrShortWrite
	}
	return len(p), nil
}

// Keys with one hash are no duplicates.
func TestDuplicate(t *testing.T) {
	record := func(hash, key, value string) []byte { return []byte(hash + string(rune(len(key))) + key + value) }
	a, b := record("01234567", "a", ""), record("01234567", "b", "a")
	if key, ok := duplicate([][]byte{a, b}); ok {
		t.Errorf("%q comes twice", key)
	}
	if key, ok := duplicate([][]byte{a, b, record("01234567", "b", "")}); !ok || string(key) != "b" {
		t.Errorf("%q, %t", key, ok)
	}
}
