// The bytes of a file of Open, made and read by the tests themselves.

package buffer_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"

	"github.com/freehold-go/freehold/buffer"
	"github.com/freehold-go/freehold/internal/test/filetest"
)

// slotWords say which slot counts.
var slotWords = [2]uint64{0xA5A5A5A5A5A5A5A5, 0x5A5A5A5A5A5A5A5A}

// header returns a header in which a slot has a length and counts, as persistent.go
// describes it.
func header(slot, length int) []byte {
	h := make([]byte, headerBytes)
	copy(h, "freehold")
	binary.LittleEndian.PutUint32(h[8:], 1)
	binary.LittleEndian.PutUint64(h[16:], slotWords[slot])
	s := h[24+16*slot:][:16]
	binary.LittleEndian.PutUint64(s, uint64(length))
	sum := append(append(bytes.Clone(h[:16]), byte(slot)), s[:12]...)
	binary.LittleEndian.PutUint32(s[12:], crc32.Checksum(sum, crc32.MakeTable(crc32.Castagnoli)))
	return h
}

// readHeader returns which slot counts in a file, and the lengths of both.
func readHeader(t testing.TB, path string) (slot int, lengths [2]int) {
	t.Helper()
	f, err := os.Open(path)
	must(t, err)
	defer f.Close()
	h := make([]byte, headerBytes)
	must1(f.ReadAt(h, 0))
	if binary.LittleEndian.Uint64(h[16:]) == slotWords[1] {
		slot = 1
	}
	for i := range lengths {
		lengths[i] = int(binary.LittleEndian.Uint64(h[24+16*i:]))
	}
	if !bytes.Equal(h[24+16*slot:][:16], header(slot, lengths[slot])[24+16*slot:][:16]) {
		t.Errorf("slot %d is %x", slot, h[24+16*slot:][:16])
	}
	return slot, lengths
}

func TestFilesOfOtherProgramsAreRead(t *testing.T) {
	mapsFiles(t)
	data := pattern(1000)
	for slot := range 2 {
		path := filepath.Join(filetest.TempDir(t), "data")
		must(t, os.WriteFile(path, append(header(slot, 1000), data...), 0o666))
		b := must1(buffer.Open(path, nil))
		wantData(t, b, data)
		must(t, b.Close())

		h := header(slot, 1000)
		copy(h[24+16*(1-slot):], h[24+16*slot:][:16]) // whole, but in the other's place
		binary.LittleEndian.PutUint64(h[16:], slotWords[1-slot])
		must(t, os.WriteFile(path, append(h, data...), 0o666))
		if _, err := buffer.Open(path, nil); !errors.Is(err, buffer.ErrCorrupt) {
			t.Errorf("slot %d in the place of the other: %v", slot, err)
		}
	}
}

// A commit writes the slot that does not count, so that the other is whole all the
// time.
func TestCommitsAlternate(t *testing.T) {
	path := saved(t, nil)
	b := must1(buffer.Open(path, nil))
	before, old := readHeader(t, copyOf(t, path))
	for i := range 5 {
		must(t, b.WriteByte(byte(i)))
		must(t, b.Commit())
		slot, lengths := readHeader(t, copyOf(t, path))
		if slot == before || lengths[slot] != i+1 || lengths[before] != old[before] {
			t.Errorf("commit %d: slot %d counts, after %d, and the lengths are %v, after %v", i, slot, before, lengths, old)
		}
		before, old = slot, lengths
	}
	must(t, b.Close())
}
