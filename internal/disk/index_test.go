package disk

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/test/filetest"
	"github.com/freehold-go/freehold/internal/vm"
)

// stopped returns the options of a store with records that was closed, and the number of keys.
func stopped(t testing.TB) (o Options, next int) {
	o = small(t, 16)
	x, _ := open(t, o)
	next = x.fill(t, 0, 4, 500)
	filetest.Must(t, x.s.Close(x.save))
	return o, next
}

// An index with a changed or missing byte is not used, and no index is used twice.
func TestIndexIsWhole(t *testing.T) {
	o, next := stopped(t)
	path := filepath.Join(o.Dir, fileName+".index")
	whole := freehold.Must(os.ReadFile(path))
	r := rand.New(rand.NewPCG(1, 2))
	try := func(b []byte) (x *index, warm bool) {
		filetest.Must(t, os.WriteFile(path, b, 0o600))
		x, warm = open(t, o)
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Error("the index is there while the store is open: ", err)
		}
		if !warm && (len(x.at) > 0 || x.s.clean != x.s.regions) {
			t.Errorf("a store that begins empty has %d records", len(x.at))
		}
		filetest.Must(t, x.s.Close(nil)) // as if the process had been killed
		return x, warm
	}
	for i := range whole {
		b := bytes.Clone(whole)
		b[i] ^= 1 << r.IntN(8)
		for _, b := range [][]byte{b, whole[:i]} {
			s := &Store{geometry: geometry{testRegion, 16}}
			if _, err := s.verifyIndex(bytes.NewReader(b), int64(len(b))); err == nil {
				t.Errorf("byte %d of %d is changed or missing, and the index is good", i, len(whole))
			}
			if i%97 != 0 {
				continue
			}
			if _, warm := try(b); warm {
				t.Errorf("byte %d of %d is changed or missing, and the index is used", i, len(whole))
			}
		}
	}
	if _, warm := try(append(bytes.Clone(whole), 0)); warm {
		t.Error("an index with a byte more is used")
	}
	x, warm := open(t, o)
	if warm || len(x.at) > 0 {
		t.Error("a store is warm without an index")
	}
	filetest.Must(t, x.s.Close(nil))
	// The stores that began empty wrote nothing, so this index is still right.
	if x, warm = try(whole); !warm || len(x.at) != next {
		t.Errorf("warm %v with %d records of %d", warm, len(x.at), next)
	}
}

// A store that begins empty although there was one says why.
func TestReasonToBeginEmpty(t *testing.T) {
	o, _ := stopped(t)
	path := filepath.Join(o.Dir, fileName+".index")
	whole := freehold.Must(os.ReadFile(path))
	for _, try := range []struct {
		index  []byte
		larger int64 // the file than before
		want   string
	}{
		{whole, 0, "^$"}, {nil, 0, "WARN .*begins empty.* reason=.*was not closed"}, {whole[1:], 0, "reason=.*index is damaged"},
		{[]byte("directory"), 0, `reason=".*index is no regular file"`},
		{whole, testRegion, "WARN .*begins empty.* reason=.*file had another size"},
	} {
		os.Remove(path)
		if string(try.index) == "directory" {
			filetest.Must(t, os.Mkdir(path, 0o700))
		} else if try.index != nil {
			filetest.Must(t, os.WriteFile(path, try.index, 0o600))
		}
		var log bytes.Buffer
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
		o.MaxBytes += try.larger
		x, _ := open(t, o)
		filetest.Must(t, x.s.Close(nil))
		if !regexp.MustCompile(try.want).MatchString(log.String()) {
			t.Errorf("the log is %q, want %s", log.String(), try.want)
		}
	}
}

// The index is not used if the owner refuses it, or the file has another size. None is written if
// the owner cannot save it.
func TestColdStarts(t *testing.T) {
	refused := errors.New("refused")
	for _, test := range []struct {
		name string
		stop func(x *index) error
		open func(o *Options)
	}{
		{"a kill", func(x *index) error { return x.s.Close(nil) }, nil},
		{"save fails", func(x *index) error {
			if err := x.s.Close(func(io.Writer) error { return refused }); !errors.Is(err, refused) {
				return errors.New("Close does not return the error of save")
			}
			return nil
		}, nil},
		{"sync fails", func(x *index) error {
			defer vm.SetFault(func(op vm.Op) error {
				if op == vm.OpSyncFile {
					return refused
				}
				return nil
			})()
			if err := x.s.Close(x.save); !errors.Is(err, refused) {
				return errors.New("Close does not return the error of sync")
			}
			return nil
		}, nil},
		{"the file is gone", func(x *index) error {
			return errors.Join(x.s.Close(x.save), os.Remove(x.s.file.Name()))
		}, nil},
		{"load fails", nil, func(o *Options) { o.Load = func(io.Reader) error { return refused } }},
		{"a larger file", nil, func(o *Options) { o.MaxBytes += testRegion }},
		{"a smaller file", nil, func(o *Options) { o.MaxBytes -= testRegion }},
		{"other regions", nil, func(o *Options) { o.region *= 2 }},
		{"nothing changed", nil, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := small(t, 16)
			x, _ := open(t, o)
			next := x.fill(t, 0, 4, 500)
			stop := test.stop
			if stop == nil {
				stop = func(x *index) error { return x.s.Close(x.save) }
			}
			filetest.Must(t, stop(x))
			for _, name := range []string{fileName, fileName + ".index"} {
				info, err := os.Stat(filepath.Join(o.Dir, name))
				if err == nil && runtime.GOOS != "windows" && info.Mode() != 0o600 {
					t.Errorf("%s has mode %v, want 0600", name, info.Mode())
				}
			}
			if test.open != nil {
				test.open(&o)
			}
			y, warm := open(t, o)
			if want := test.stop == nil && test.open == nil; warm != want {
				t.Fatalf("warm %v, want %v", warm, want)
			}
			if !warm {
				if y.s.first == x.s.first {
					t.Error("records of the old store have the sequence numbers of the new one")
				}
				y.at = x.at // as if the owner did not forget: places of the old store
			}
			for written := range 2 {
				hits, errs := y.check(t, next)
				if warm && hits != next || !warm && (hits > 0 || written == 0 && errs[ErrOverwritten] != next) {
					t.Errorf("%d hits of %d records, errors %v", hits, next, errs)
				}
				if warm {
					break
				}
				y.fill(t, next, 40, 500) // other keys at the same places
			}
			if info := freehold.Must(os.Stat(y.s.file.Name())); info.Size() != o.MaxBytes {
				t.Errorf("the file has %d bytes, want %d", info.Size(), o.MaxBytes)
			}
		})
	}
}

// TestIndexNumbers: an index with the right checksum is not used if its numbers do not fit.
func TestIndexNumbers(t *testing.T) {
	good := [indexWords]uint64{testRegion, 16, 5, 9, 2}
	for _, test := range []struct {
		head string
		word int
		to   uint64
		want bool
	}{
		{indexHead, 2, 10, true}, {indexHead, 2, 11, false}, {indexHead, 2, 0, false}, {indexHead, 3, maxSeq, true},
		{indexHead, 3, maxSeq + 1, false}, {indexHead, 4, 16, true}, {indexHead, 4, 17, false}, {"fhindex2", 4, 2, false},
	} {
		words := good
		words[test.word] = test.to
		b := []byte(test.head)
		for _, w := range words {
			b = binary.LittleEndian.AppendUint64(b, w)
		}
		b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
		s := &Store{geometry: geometry{testRegion, 16}}
		if _, err := s.verifyIndex(bytes.NewReader(b), int64(len(b))); (err == nil) != test.want {
			t.Errorf("%+v: %v", test, err)
		}
	}
}

// An index file may have any bytes.
func FuzzIndex(f *testing.F) {
	o, _ := stopped(f)
	f.Add(freehold.Must(os.ReadFile(filepath.Join(o.Dir, fileName+".index"))))
	f.Add([]byte(indexHead))
	f.Fuzz(func(t *testing.T, b []byte) {
		s := &Store{geometry: geometry{testRegion, 16}}
		owners, err := s.verifyIndex(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		if got, err := io.ReadAll(owners); err != nil || len(got) != len(b)-indexHeadBytes-sumBytes || s.clean > s.regions {
			t.Errorf("%d bytes of %d, %v, clean %d", len(got), len(b), err, s.clean)
		}
	})
}

func FuzzRegion(f *testing.F) {
	g := geometry{testRegion, 16}
	const seq = 1000
	region := make([]byte, testRegion)
	r := Record{Key: []byte("key"), Value: make([]byte, 1000), Meta: Meta{1, 2, 3}}
	r.put(region)
	seal(region, g.position(seq, 0))
	entry{5, 0, Size(3, 1000)}.put(entryAt(region, 0))
	g.putFooter(region, seq, 1, Size(3, 1000))
	f.Add(bytes.Clone(region))
	entry{5, testRegion - UnitBytes, Size(3, 1000)}.put(entryAt(region, 0)) // beyond the end
	g.putFooter(region, seq, 1, Size(3, 1000))
	f.Add(region)
	f.Fuzz(func(t *testing.T, b []byte) {
		for off := 0; off < len(b); off += UnitBytes {
			if r, ok := verified(b[off:], g.position(seq, off)); ok && HeadBytes+len(r.Key)+len(r.Value) > len(b)-off {
				t.Error("a record exceeds its bytes")
			}
		}
		if len(b) != testRegion {
			return
		}
		if count, ok := g.count(b, seq); ok && g.checkTable(b, seq, count) {
			for i := range count {
				if e := entryIn(entryAt(b, i)); e.off+e.size > len(b) {
					t.Errorf("entry %d of %d is %+v", i, count, e)
				}
			}
		}
	})
}

// Places and sequence numbers lead back to where they came from, up to the largest file.
func TestGeometry(t *testing.T) {
	for _, g := range []geometry{{testRegion, 8}, {testRegion, 17}, {regionBytes, 7}, {regionBytes, (MaxBytes - headerBytes) / regionBytes}} {
		for _, first := range []uint64{1 << 32, maxSeq - uint64(2*g.regions)} {
			for _, back := range []int{0, 1, g.regions / 2, g.regions - 1} {
				opened := first + uint64(g.regions)
				seq := opened - uint64(back)
				for _, off := range []int{0, UnitBytes, g.region - UnitBytes} {
					at := g.place(seq, off)
					index, got, ok := g.locate(at)
					if !ok || got != off || index != g.index(seq) || g.seqOf(index, opened) != seq || at == 0 {
						t.Errorf("%+v: offset %d of region %d: place %d, index %d, offset %d, sequence number %d", g, off, seq, at, index, got, g.seqOf(index, opened))
					}
					if p := g.position(seq, off); p <= g.position(seq-1, g.region-UnitBytes) {
						t.Errorf("%+v: position %d does not grow", g, p)
					}
				}
			}
		}
		for _, at := range []Place{0, headerBytes/UnitBytes - 1, Place((g.offset(g.regions)) / UnitBytes)} {
			if _, _, ok := g.locate(at); ok {
				t.Errorf("%+v: place %d is in a region", g, at)
			}
		}
	}
}

// A store whose regions are all full reclaims some after the first Append, and not in Open: the owner
// does not have the store yet.
func TestFullAtOnce(t *testing.T) {
	o := small(t, 16)
	x, _ := open(t, o)
	next := x.fill(t, 0, 20, 500)
	x.settle()
	x.s.mu.Lock()
	x.s.wantClean = 0 // regions are not emptied ahead
	x.s.mu.Unlock()
	for x.s.clean > 0 {
		next = x.fill(t, next, 1, 500)
		x.settle()
	}
	filetest.Must(t, x.s.Close(x.save))
	y, warm := open(t, o)
	if !warm || y.s.clean != 0 || y.wrote != 0 {
		t.Fatalf("warm %v, with %d clean regions, and the writer has run: %v", warm, y.s.clean, y.wrote > 0)
	}
	before := len(y.at)
	if y.set(keyOf(next), nil, Meta{}) {
		t.Error("there is room before a region is emptied")
	}
	y.settle()
	if len(y.at) >= before || y.s.clean != y.s.wantClean || !y.set(keyOf(next), nil, Meta{}) {
		t.Errorf("%d of %d records, %d clean regions", len(y.at), before, y.s.clean)
	}
}
