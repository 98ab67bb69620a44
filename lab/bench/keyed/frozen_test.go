// Frozen: maps in a file that processes read.

package keyed

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
	"time"
	"unsafe"

	"go.etcd.io/bbolt"

	"github.com/freehold-go/freehold/hashmap"
	"github.com/freehold-go/freehold/internal/sysmem"
	"github.com/freehold-go/freehold/lab/bench/measure"
)

// A filePeer keeps a map in a file. The value of keys[i] is fileValue(i).
type filePeer struct {
	name  string
	write func(path string, keys []string)
	open  func(path string) fileMap
}

// A fileMap is an open map. get reads both ends of a value, in the file's memory.
type fileMap struct {
	get   func(k string) uint64
	close func()
}

const fileValueBytes = 100

func fileValue(i int) []byte {
	v := make([]byte, fileValueBytes)
	binary.LittleEndian.PutUint64(v, uint64(i))
	binary.LittleEndian.PutUint64(v[fileValueBytes-8:], uint64(i))
	return v
}

func numberInFile(v []byte) uint64 {
	return binary.LittleEndian.Uint64(v) & binary.LittleEndian.Uint64(v[fileValueBytes-8:])
}

var filePeers = []filePeer{
	{"freehold-frozen", func(path string, keys []string) {
		must(hashmap.Freeze(func(yield func(string, []byte) bool) {
			for i, k := range keys {
				if !yield(k, fileValue(i)) {
					return
				}
			}
		}, path))
	}, func(path string) fileMap {
		f, err := hashmap.OpenFrozen[string, []byte](path)
		must(err)
		var n uint64
		read := func(v []byte) { n = numberInFile(v) }
		return fileMap{func(k string) uint64 {
			_, err := f.View(k, read)
			must(err)
			return n
		}, func() { must(f.Close()) }}
	}},
	{"bbolt", writeBolt, func(path string) fileMap { // all in one transaction
		db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true})
		must(err)
		tx, err := db.Begin(false)
		must(err)
		bucket := tx.Bucket(boltBucket)
		return fileMap{func(k string) uint64 {
			return numberInFile(bucket.Get(unsafe.Slice(unsafe.StringData(k), len(k))))
		}, func() {
			must(tx.Rollback())
			must(db.Close())
		}}
	}},
}

var boltBucket = []byte("bucket")

// writeBolt puts sorted keys into full pages, which suits bbolt best, and syncs once, as Freeze does.
func writeBolt(path string, keys []string) {
	sorted := make([]int, len(keys))
	for i := range sorted {
		sorted[i] = i
	}
	slices.SortFunc(sorted, func(i, j int) int { return cmp.Compare(keys[i], keys[j]) })
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoSync: true, NoFreelistSync: true})
	must(err)
	for batch := range slices.Chunk(sorted, 10_000) {
		must(db.Update(func(tx *bbolt.Tx) error {
			bucket, err := tx.CreateBucketIfNotExists(boltBucket)
			must(err)
			bucket.FillPercent = 1
			for _, i := range batch {
				must(bucket.Put([]byte(keys[i]), fileValue(i)))
			}
			return nil
		}))
	}
	must(db.Sync())
	must(db.Close())
}

// BenchmarkFrozen has keys of 16 B and values of 100 B.
func BenchmarkFrozen(b *testing.B) {
	n := measure.Size().Numbers[1]
	for _, p := range filePeers {
		measure.Run(b, "op=build", p.name, func(b *testing.B) {
			keys, path := keysOfFile(n), filepath.Join(b.TempDir(), "map")
			measure.Once(b, n, func() { p.write(path, keys) })
			info, err := os.Stat(path)
			must(err)
			b.ReportMetric(float64(info.Size())/float64(n), "file-B/entry")
			measure.Sum(b, uint64(n))
		})
		measure.Run(b, "op=open", p.name, func(b *testing.B) {
			path := p.written(b, n)
			measure.Rounds(b, 20, func() time.Duration {
				start := time.Now()
				m := p.open(path)
				took := time.Since(start)
				m.close()
				return took
			})
			measure.Sum(b, uint64(n))
		})
		measure.Run(b, "op=get", p.name, func(b *testing.B) {
			m := p.open(p.written(b, n))
			defer m.close()
			order{n: uint64(n), random: true}.texts().time(b, func(_ int, batch []string) (sum uint64) {
				for _, k := range batch {
					sum += m.get(k)
				}
				return sum
			})
		})
		measure.Run(b, "op=held", p.name, func(b *testing.B) { heldByTwo(b, p, n) })
	}
}

func keysOfFile(n int) []string {
	keys := make([]string, 0, n)
	order{n: uint64(n)}.texts().each(n, func(_ int, batch []string) { keys = append(keys, batch...) })
	return keys
}

// written returns the path of a new file.
func (p filePeer) written(b *testing.B, n int) string {
	path := filepath.Join(b.TempDir(), "map")
	p.write(path, keysOfFile(n))
	runtime.GC()
	return path
}

const fileVariable = "FREEHOLD_LAB_FILE" // tells a reader the peer, the entries and the path

// heldByTwo reports by how much the shares of physical memory (Pss) of two processes grow that open a
// file and get each key.
func heldByTwo(b *testing.B, p filePeer, n int) {
	path := p.written(b, n)
	var readers [2]struct {
		*exec.Cmd
		in  io.WriteCloser
		out *bufio.Scanner
	}
	for i := range readers {
		cmd := exec.Command(os.Args[0], "-test.run=^TestFileReader$")
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %s", fileVariable, p.name, n, path))
		in, err := cmd.StdinPipe()
		must(err)
		out, err := cmd.StdoutPipe()
		must(err)
		must(cmd.Start())
		defer cmd.Wait()
		defer in.Close()
		readers[i].Cmd, readers[i].in, readers[i].out = cmd, in, bufio.NewScanner(out)
	}
	held := func(state string) (sum int64) {
		for _, r := range readers {
			if r.out.Scan(); r.out.Text() != state {
				b.Fatalf("a reader says %q", r.out.Text())
			}
		}
		for _, r := range readers {
			stat, err := sysmem.Stat(sysmem.Root(), fmt.Sprintf("proc/%d/smaps_rollup", r.Process.Pid))
			if err != nil {
				b.Skip(err)
			}
			sum += stat["Pss"]
		}
		return sum
	}
	before := held("ready")
	for _, r := range readers {
		_, err := fmt.Fprintln(r.in)
		must(err)
	}
	b.ReportMetric(float64(held("done")-before)/float64(n), "resident-B/entry")
	b.ReportMetric(0, "ns/op")
	measure.Sum(b, uint64(n))
}

// TestFileReader is a process that reads a file.
func TestFileReader(t *testing.T) {
	var name, path string
	var n int
	if k, _ := fmt.Sscanf(os.Getenv(fileVariable), "%s %d %s", &name, &n, &path); k != 3 {
		t.Skip("runs below BenchmarkFrozen")
	}
	p := filePeers[slices.IndexFunc(filePeers, func(p filePeer) bool { return p.name == name })]
	keys := keysOfFile(n)
	tell := func(state string) {
		debug.FreeOSMemory() // garbage is not the map's
		fmt.Println(state)
		os.Stdin.Read(make([]byte, 1)) // until the parent goes on
	}
	tell("ready")
	m := p.open(path)
	for i, k := range keys {
		if got := m.get(k); got != uint64(i) {
			t.Fatalf("key %d has %d", i, got)
		}
	}
	tell("done")
	runtime.KeepAlive(keys)
	m.close()
}
