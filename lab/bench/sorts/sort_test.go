package sorts

import (
	"encoding/binary"
	"runtime"
	"testing"

	"github.com/freehold-go/freehold/lab/bench/measure"
	"github.com/freehold-go/freehold/lab/process"
)

// The records that are sorted.
const (
	fixedBytes = 24 // with a random key in the first 8
	leastFrame = 8  // bytes of the smallest record where each has its own size
	mostFrame  = 64
)

// A set has records, and sorts them as the load says.
type set interface {
	add(record []byte)
	sort()
	bytes() int // that the records take, with their frames
	each(f func(record []byte))
}

// A sortPeer makes sets of n records. kind is how they are sorted: 24, by the number in the first
// 8 bytes; 24-bytes, by these bytes; 24-cmp, by a comparison of them; framed, which have sizes of
// their own, by all bytes. All but freehold-records sort on one processor.
type sortPeer struct {
	name  string
	kinds []string
	fresh func(kind string, n int) set
}

var sortPeers = []sortPeer{
	{"freehold-records", []string{"24", "24-bytes", "24-cmp", "framed"}, newRecords(runtime.NumCPU())},
	{"freehold-records-one", []string{"24", "24-bytes", "24-cmp", "framed"}, newRecords(1)},
	{"ristretto-buffer", []string{"24", "framed"}, newZ},
	{"go-structs", []string{"24"}, newStructs},
}

func BenchmarkSort(b *testing.B) {
	for _, p := range sortPeers {
		for _, kind := range p.kinds {
			measure.Run(b, "records="+kind, p.name, func(b *testing.B) {
				n := measure.Size().Records
				sortOnce(b, p, kind, max(n/100, 2)) // warms up
				runtime.GC()
				sortOnce(b, p, kind, n)
			})
		}
	}
}

func sortOnce(b *testing.B, p sortPeer, kind string, n int) {
	s := p.fresh(kind, n)
	fillSet(kind, n, s)
	watch := startPeak(b)
	measure.Once(b, 1, s.sort)
	watch.report(b, s.bytes())
	measure.Sum(b, checkSet(b, n, s))
}

// All peers sort the same records alike.
func TestSets(t *testing.T) {
	sums := map[string]uint64{}
	for _, p := range sortPeers {
		for _, kind := range p.kinds {
			const n = 1000
			s := p.fresh(kind, n)
			fillSet(kind, n, s)
			s.sort()
			sum, key := checkSet(t, n, s), kind[:2]
			if sums[key] == 0 {
				sums[key] = sum
			}
			if sum != sums[key] || sum == 0 {
				t.Errorf("%s: %s: the sum is %d, that of others %d", p.name, kind, sum, sums[key])
			}
		}
	}
}

// bytesOfSet returns about how many bytes of records there are.
func bytesOfSet(kind string, n int) int {
	if kind == "framed" {
		return n * (leastFrame + mostFrame) / 2
	}
	return n * fixedBytes
}

// fillSet adds n random records.
func fillSet(kind string, n int, s set) {
	rnd := measure.Random(1)
	var record [mostFrame]byte
	for i := range n {
		size := fixedBytes
		binary.BigEndian.PutUint64(record[:], rnd.Next())
		if kind == "framed" {
			size = leastFrame + int(rnd.Next()%(mostFrame-leastFrame+1))
			for at := 8; at < size; at += 8 {
				binary.BigEndian.PutUint64(record[at:], rnd.Next())
			}
		} else {
			binary.LittleEndian.PutUint64(record[8:], uint64(i))
		}
		s.add(record[:size])
	}
}

// checkSet verifies the order, and returns a sum that depends on it.
func checkSet(t testing.TB, want int, s set) (sum uint64) {
	n, last := 0, uint64(0)
	s.each(func(record []byte) {
		key := binary.BigEndian.Uint64(record)
		if key < last {
			t.Error("the result is not sorted")
		}
		last = key
		sum = sum*31 + key + uint64(len(record))
		n++
	})
	if n != want {
		t.Errorf("%d records went in and %d came out", want, n)
	}
	return sum
}

// A peakWatch finds the most physical memory that the process has.
type peakWatch struct{ before uint64 }

func startPeak(b *testing.B) peakWatch {
	before, err := process.ResetPeak()
	if err != nil {
		b.Skip(err)
	}
	return peakWatch{before}
}

// report reports the peak, and its growth since the start for each byte of the data.
func (w peakWatch) report(b *testing.B, data int) {
	peak := must(process.Peak())
	b.ReportMetric(float64(peak)/1e6, "peak-MB")
	b.ReportMetric(float64(peak-min(w.before, peak))/float64(data), "resident/requested")
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
