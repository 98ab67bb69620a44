// Fills: buffers, sorts and caches write until the disk is full.

//go:build linux

package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/buffer"
	"github.com/freehold-go/freehold/extsort"
	"github.com/freehold-go/freehold/internal/test/filetest"
)

// fillers are the kinds of writers. Each returns how often it has filled the room.
var fillers = []struct {
	name string
	fill func(*testing.T, *Room, *rand.Rand) int
}{
	{"Buffer that spills", fillBuffer},
	{"file of Open", fillFile},
	{"Records, sorted", fillRecords},
	{"extsort.Sort", fillSort},
	{"Cache.SnapshotFile", fillSnapshot},
}

// A full disk is an error of each kind of writer, and changes nothing.
func TestFillsOfADisk(t *testing.T) {
	if Isolated(t) {
		fillAll(t, NewDisk(t))
	}
}

// The limit RLIMIT_FSIZE has the same effect.
func TestFillsUpToAFileSize(t *testing.T) {
	if Restricted(t) {
		fillAll(t, NewSizeLimit(t))
	}
}

// fillAll makes each of the fillers fill the room equally often.
func fillAll(t *testing.T, room *Room) {
	all := 0
	for _, f := range fillers {
		start := time.Now()
		fills := 0
		for round := 0; fills < Fills()/len(fillers); round++ {
			fills += f.fill(t, room, Random(round))
			if t.Failed() {
				t.Fatalf("%s, round %d: -seed %d", f.name, round, Seed())
			}
			room.WantEmpty(t)
			Show("fills", all+fills, Fills()+1)
		}
		all += fills
		t.Logf("%-20s %5d fills %6.1f s", f.name, fills, time.Since(start).Seconds())
	}
	Show("fills", 1, 1)
}

// someRoom returns a random limit in bytes.
func someRoom(r *rand.Rand) int { return 16<<10 + r.IntN(1<<20) }

// appendTo appends up to n bytes of data to b, with a random method.
func appendTo(b *buffer.Buffer, r *rand.Rand, data []byte) (n int, err error) {
	data = data[:min(len(data), 1+r.IntN(1<<r.IntN(19)))]
	switch r.IntN(6) {
	case 0:
		return b.Write(data)
	case 1:
		return b.WriteString(string(data))
	case 2:
		read, err := b.ReadFrom(bytes.NewReader(data))
		return int(read), err
	case 3:
		if err = b.WriteByte(data[0]); err == nil {
			n = 1
		}
		return n, err
	case 4:
		if err = b.Grow(len(data)); err != nil {
			return 0, err
		}
		return b.Write(data)
	}
	to, err := b.Extend(len(data))
	if err != nil {
		return 0, err
	}
	return len(data), b.Guard(func() { copy(to, data) })
}

// fill appends to b until the room is full. b already has the beginning of data, up to b's
// length.
func fill(t *testing.T, room *Room, r *rand.Rand, b *buffer.Buffer, data []byte) {
	for {
		before := b.Len()
		n, err := appendTo(b, r, data[before:])
		if b.Len() != before+n {
			t.Fatalf("%d bytes after %d and %d more: %v", b.Len(), before, n, err)
		}
		if err != nil {
			room.WantFull(t, err)
			break
		}
	}
	Same(t, "the buffer", b.Bytes(), data[:b.Len()])
}

func fillBuffer(t *testing.T, room *Room, r *rand.Rand) int {
	limit := someRoom(r)
	room.Limit(t, limit)
	data := Noise()[r.IntN(len(Noise())/2):]
	b := buffer.New(alloctest.New(t), &buffer.Options{Dir: room.Dir, SpillAfter: 1 + r.IntN(limit/2)})
	defer func() { filetest.Must(t, b.Close()) }()
	fill(t, room, r, b, data)

	room.Limit(t, 2*limit)
	before := b.Len()
	fill(t, room, r, b, data)
	if b.Len() == before {
		t.Error("nothing could be written when there was room")
	}
	b.Truncate(r.IntN(b.Len()))
	b.Trim()
	Same(t, "the buffer, trimmed", b.Bytes(), data[:b.Len()])
	fill(t, room, r, b, data)
	return 3
}

func fillFile(t *testing.T, room *Room, r *rand.Rand) int {
	path := filepath.Join(room.Dir, "file")
	defer os.Remove(path)
	fills := 0
	room.Limit(t, 4096)
	if room.Each() {
		room.Limit(t, r.IntN(4096))
	} else {
		filetest.Must(t, os.WriteFile(path+"2", Noise()[:4096], 0o600))
	}
	_, err := buffer.Open(path, nil)
	if err == nil {
		t.Fatal("opened where there is no room for a header")
	}
	room.WantFull(t, err)
	if info, err := os.Stat(path); err == nil && info.Size() != 0 {
		t.Errorf("what could not be opened has %d bytes", info.Size())
	}
	if !room.Each() {
		filetest.Must(t, os.Remove(path+"2"))
	}
	fills++

	limit := someRoom(r)
	room.Limit(t, limit)
	data := Noise()[r.IntN(len(Noise())/2):]
	b := freehold.Must(buffer.Open(path, nil))
	for range 3 {
		fill(t, room, r, b, data)
		fills++
		if r.IntN(2) == 0 {
			filetest.Must(t, b.Sync())
		}
		if r.IntN(2) == 0 {
			b.Truncate(r.IntN(b.Len() + 1))
		}
		n := b.Len()
		filetest.Must(t, b.Close())
		if room.Each() { // the file was larger than any may be from now on
			room.Limit(t, n/2)
		}
		b = freehold.Must(buffer.Open(path, nil))
		Same(t, "the file", b.Bytes(), data[:n])
		if b.Len() != n {
			t.Fatalf("the file has %d bytes, want %d", b.Len(), n)
		}
		if r.IntN(2) == 0 {
			limit = min(2*limit, 3<<20)
		}
		room.Limit(t, limit)
	}
	filetest.Must(t, b.Close())
	return fills
}

// fillRecords fills the room with records, and again while it sorts them.
func fillRecords(t *testing.T, room *Room, r *rand.Rand) int {
	limit := someRoom(r)
	room.Limit(t, limit)
	b := buffer.New(freehold.Default(), &buffer.Options{Dir: room.Dir, SpillAfter: 1})
	defer func() { filetest.Must(t, b.Close()) }()
	records := freehold.Must(buffer.NewRecords(b, nil))
	data := Noise()[r.IntN(len(Noise())/2):]
	var want [][]byte
	for {
		record := data[:r.IntN(200)]
		if err := records.AppendBytes(record); err != nil {
			room.WantFull(t, err)
			break
		}
		want = append(want, record)
		data = data[len(record):]
	}
	wantRecords(t, records, want)
	fills := 1
	if !room.Each() {
		// The buffer's capacity may exceed the records, so the sort needs a larger file.
		room.WantFull(t, records.SortBy(context.Background(), nil, nil))
		wantRecords(t, records, want)
		fills++
	}
	room.Limit(t, 2*limit)
	filetest.Must(t, records.SortBy(context.Background(), nil, nil))
	slices.SortStableFunc(want, bytes.Compare)
	wantRecords(t, records, want)
	return fills
}

func wantRecords(t *testing.T, records *buffer.Records, want [][]byte) {
	t.Helper()
	if records.Len() != len(want) {
		t.Fatalf("%d records, want %d", records.Len(), len(want))
	}
	i := 0
	for _, record := range records.All() {
		if !bytes.Equal(record, want[i]) {
			t.Fatalf("record %d is another one", i)
		}
		i++
	}
}

// fillSort sorts with too little room for the temporary files or the output.
func fillSort(t *testing.T, room *Room, r *rand.Rand) int {
	format, text := someInput(r)
	o := &extsort.Options{
		Format: format, MemoryBytes: extsort.MinMemoryBytes * (1 + r.IntN(3)), Parallel: 1 + r.IntN(2), Parent: alloctest.New(t),
		TempDirs: []string{room.Dir}, Reverse: r.IntN(2) == 0, Unique: r.IntN(4) == 0,
	}
	if r.IntN(3) == 0 { // only the output is in the room
		o.TempDirs[0] = t.TempDir()
	}
	if r.IntN(3) == 0 {
		o.Key = func(dst, record []byte) []byte { return append(dst, record[len(record)/2:]...) }
	}
	in := filepath.Join(t.TempDir(), "in")
	room.Limit(t, 1<<30)
	filetest.Must(t, os.WriteFile(in, text, 0o600))
	out := filepath.Join(room.Dir, "out")
	var old []byte
	if r.IntN(2) == 0 {
		old = Noise()[:5000]
		filetest.Must(t, os.WriteFile(out, old, 0o600))
	}
	room.Limit(t, 16<<10+r.IntN(2*len(text)))
	err := extsort.SortFile(context.Background(), out, o, in)
	if err == nil {
		old = sorted(t, o, text)
	} else {
		room.WantFull(t, err)
		if !strings.Contains(err.Error(), "extsort: ") {
			t.Errorf("%q does not say who had no room", err)
		}
	}
	got, readErr := os.ReadFile(out)
	if readErr != nil && !(errors.Is(readErr, os.ErrNotExist) && old == nil) {
		t.Error(readErr)
	}
	Same(t, "the output", got, old)
	got, readErr = os.ReadFile(in)
	filetest.Must(t, readErr)
	Same(t, "the input", got, text)
	room.WantEmpty(t, "out")
	os.Remove(out)
	if err == nil {
		return 0
	}
	return 1
}

// someInput returns 0.3 to 1.5 MB of records.
func someInput(r *rand.Rand) (extsort.Format, []byte) {
	size := 300_000 + r.IntN(1_200_000)
	if r.IntN(4) == 0 {
		return extsort.Fixed(8), Noise()[:size&^7]
	}
	var text []byte
	for len(text) < size {
		text = fmt.Appendf(text, "%x\n", Noise()[len(text):][:r.IntN(40)])
	}
	return extsort.Lines('\n'), text
}

// sorted returns the text sorted by a second extsort, with enough memory.
func sorted(t *testing.T, o *extsort.Options, text []byte) []byte {
	var out bytes.Buffer
	in := *o
	in.MemoryBytes, in.Parallel, in.Parent = 64<<20, 1, nil
	filetest.Must(t, extsort.Sort(context.Background(), &out, &in, bytes.NewReader(text)))
	return out.Bytes()
}
