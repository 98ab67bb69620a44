package disk

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/internal/test/filetest"
)

const testRegion = 4096

// An index is an Owner: a map under one lock.
type index struct {
	s    *Store
	fold uint64 // hashes are taken modulo this, unless it is 0

	mu       sync.Mutex
	at       map[uint64]slot
	gone     int    // calls of ForgetRange
	outdated uint64 // reads that found other bytes, since their place was given up meanwhile

	writer sync.Cond
	wrote  int    // how often the writer has begun to wait
	began  uint64 // the sequence number at first
}

type slot struct {
	at   Place
	size int
	hits int
}

func newIndex() *index {
	return &index{at: map[uint64]slot{}, writer: sync.Cond{L: new(sync.Mutex)}}
}

func (x *index) hash(key []byte) uint64 {
	h := uint64(0)
	for _, c := range key {
		h = (h ^ uint64(c)) * 0x100000001b3
	}
	if x.fold != 0 {
		h %= x.fold
	}
	return h
}

func (x *index) Priority(h uint64, at Place) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	if sl := x.at[h]; sl.at == at {
		return sl.hits
	}
	return 0
}

func (x *index) Rewrite(at Place, r *Record) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if sl := x.at[r.Hash]; sl.at != at {
		return
	}
	if to, ok := x.s.Append(r); ok {
		x.at[r.Hash] = slot{at: to, size: Size(len(r.Key), len(r.Value))}
	}
}

func (x *index) Forget(h uint64, at Place) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.at[h].at == at {
		delete(x.at, h)
	}
}

func (x *index) ForgetRange(from, to Place) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.gone++
	for h, sl := range x.at {
		if sl.at >= from && sl.at < to {
			delete(x.at, h)
		}
	}
}

// set appends a record, and reports whether the index has it.
func (x *index) set(key, value []byte, m Meta) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	r := &Record{Hash: x.hash(key), Key: key, Value: value, Meta: m}
	delete(x.at, r.Hash)
	at, ok := x.s.Append(r)
	if ok {
		x.at[r.Hash] = slot{at: at, size: Size(len(key), len(value))}
	}
	return ok
}

func (x *index) remove(key []byte) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.at, x.hash(key))
}

// get returns the value of a key, or an error. ok says that the index has a slot for the hash.
func (x *index) get(key []byte) (value []byte, m Meta, ok bool, err error) {
	h := x.hash(key)
	for range 4 {
		x.mu.Lock()
		sl, ok := x.at[h]
		if ok {
			sl.hits++
			x.at[h] = sl
		}
		seq := x.s.Seq(sl.at)
		x.mu.Unlock()
		if !ok {
			return nil, Meta{}, false, nil
		}
		value, m, err = x.s.Read(nil, sl.at, sl.size, key)
		if err == ErrDamaged && !x.isStill(h, sl.at, seq) {
			err = ErrOverwritten
		}
		if err != ErrOverwritten {
			return value, m, true, err
		}
	}
	return nil, Meta{}, true, err
}

// isStill reports whether the index and the region at the place are as they were.
func (x *index) isStill(h uint64, at Place, seq uint64) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.at[h].at == at && x.s.Seq(at) == seq {
		return true
	}
	x.outdated++
	return false
}

func (x *index) save(w io.Writer) error {
	for h, sl := range x.at {
		if err := binary.Write(w, binary.LittleEndian, []uint64{h, uint64(sl.at), uint64(sl.size)}); err != nil {
			return err
		}
	}
	return nil
}

func (x *index) load(r io.Reader) error {
	for {
		var w [3]uint64
		if err := binary.Read(r, binary.LittleEndian, &w); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		x.at[w[0]] = slot{at: Place(w[1]), size: int(w[2])}
	}
}

// small returns the options of a store of n regions of 4 KiB.
func small(t testing.TB, n int) Options {
	return Options{Dir: t.TempDir(), MaxBytes: headerBytes + int64(n)*testRegion, Parent: alloctest.New(t), region: testRegion, cached: true}
}

// open opens a store with an index, and closes it at the end of the test.
func open(t testing.TB, o Options) (x *index, warm bool) {
	t.Helper()
	x = newIndex()
	o.Owner = x
	if o.Load == nil {
		o.Load = x.load
	}
	wrap := o.wrap
	o.wrap = func(s *Store) { // before the writer calls the owner
		x.s, x.began = s, s.opened.Load()
		s.wrote = func() {
			x.writer.L.Lock()
			defer x.writer.L.Unlock()
			x.wrote++
			x.writer.Broadcast()
		}
		if wrap != nil {
			wrap(s)
		}
	}
	_, warm, err := Open(o)
	filetest.Must(t, err)
	t.Cleanup(func() { x.s.Close(nil) })
	return x, warm
}

// valueOf returns a value that only this key and version have.
func valueOf(key []byte, version uint64, n int) []byte {
	v := binary.LittleEndian.AppendUint64(bytes.Clone(key), version)
	for r := rand.New(rand.NewPCG(version, uint64(len(key)))); len(v) < n; {
		v = binary.LittleEndian.AppendUint64(v, r.Uint64())
	}
	return v
}

// settle waits until the writer has written all sealed regions, and has made room.
func (x *index) settle() {
	x.writer.L.Lock()
	defer x.writer.L.Unlock()
	for {
		x.s.mu.Lock()
		want := int(x.s.opened.Load()-x.began) + 1
		if x.s.open != nil {
			want--
		}
		started := x.s.started
		x.s.mu.Unlock()
		if !started || x.wrote >= want {
			return
		}
		x.writer.Wait()
	}
}

// A read returns the key's last value or none, while other goroutines write other keys, some with the
// same hash, and the ring overwrites regions.
func TestModel(t *testing.T) {
	for _, test := range []struct {
		name    string
		regions int
		region  int
		fold    uint64
		values  int
		threads bool
		cached  bool
	}{
		{"small regions", 16, testRegion, 0, 1500, false, true},
		{"keys of one hash", 16, testRegion, 300, 1500, true, true},
		{"whole regions", 8, regionBytes, 0, 300_000, false, false},
		{"whole regions by threads", 8, regionBytes, 0, 300_000, true, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := small(t, test.regions)
			o.region, o.MaxBytes = test.region, headerBytes+int64(test.regions)*int64(test.region)
			o.threads, o.cached = test.threads, test.cached
			x, _ := open(t, o)
			x.fold = test.fold
			const goroutines, keys = 4, 200
			steps := 4000
			if testing.Short() {
				steps = 600
			}
			all := map[string]Record{}
			var mu sync.Mutex
			var wg sync.WaitGroup
			for g := range goroutines {
				wg.Go(func() {
					r := rand.New(rand.NewPCG(uint64(g), 1))
					latest := map[string]Record{}
					hits := 0
					for n := range uint64(steps) {
						key := fmt.Appendf(nil, "key-%d-%d", g, min(r.IntN(keys), r.IntN(keys)))
						switch r.IntN(8) {
						case 0, 1:
							v := valueOf(key, n, r.IntN(test.values))
							m := Meta{Flags: r.Uint64(), Version: n, Expires: r.Uint32()}
							delete(latest, string(key))
							if x.set(key, v, m) {
								latest[string(key)] = Record{Value: v, Meta: m}
							} else {
								x.settle()
							}
						case 2:
							x.remove(key)
							delete(latest, string(key))
						default:
							v, m, ok, err := x.get(key)
							want, has := latest[string(key)]
							if ok && err == nil {
								hits++
								if !has || !bytes.Equal(v, want.Value) || m != want.Meta {
									t.Errorf("%s: a wrong value, and the key has %v", key, has)
								}
							} else if err != nil && err != ErrOtherKey && err != ErrOverwritten {
								t.Errorf("%s: %v", key, err)
							}
						}
					}
					if hits == 0 && steps > 1000 {
						t.Error("no hits")
					}
					mu.Lock()
					defer mu.Unlock()
					maps.Copy(all, latest)
				})
			}
			wg.Wait()
			x.settle()
			st := x.s.Stats()
			if st.Damaged-x.outdated+st.Lost+st.ReadErrors+st.WriteErrors > 0 || st.Off != nil || st.Reclaimed == 0 || st.Rewritten == 0 {
				t.Errorf("%+v", st)
			}
			// The next store has all that the index has at a clean stop.
			filetest.Must(t, x.s.Close(x.save))
			y, warm := open(t, o)
			y.fold = test.fold
			if !warm || len(y.at) != len(x.at) {
				t.Errorf("warm %v, with %d of %d records", warm, len(y.at), len(x.at))
			}
			for key, want := range all {
				if v, m, ok, err := y.get([]byte(key)); ok && err != ErrOtherKey && (err != nil || !bytes.Equal(v, want.Value) || m != want.Meta) {
					t.Errorf("%s after the stop: a wrong value, %v", key, err)
				}
			}
		})
	}
}
