// Freeze: writes a map to a file; frozen_file.go has the layout.
//
//	entries --> records: hash | length of the key | key | value --> sorted by hash --> buckets
//
// The records are in a buffer, which spills to a temporary file beyond freezeMemory.

package hashmap

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"math/bits"
	"math/rand/v2"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/buffer"
	"github.com/freehold-go/freehold/internal/file/atomicfile"
	"github.com/freehold-go/freehold/internal/hash"
)

const (
	freezeMemory = 32 << 20 // bytes of records in memory, before they spill
	perBucket    = 4        // entries
	hashBytes    = 8
)

// Freeze writes entries to a file for [OpenFrozen]. entries is m.All() of a [Map] or a [Shared], for
// example, or maps.All of a Go map. Freeze replaces a file at path atomically when the new one
// is complete: after an error, a kill or a loss of power, path has the whole old file or the whole
// new one. Once Freeze has returned nil, path has the new one after a loss of power too. Processes
// that have the old file open keep it. On Windows, Freeze fails while a process has the old file
// open. The new file has the permissions of the old one, or without one 0666 less the umask.
//
// K is string, or a type without Go pointers that is compared by its bytes: without floats, padding
// and blank fields. V is string, []byte, or any type without Go pointers. The file stores the padding
// bytes of V too. Freeze panics for other types and names them.
//
// The error is the system's, or names a key that occurs twice or an entry of 4 GiB or more. Freeze
// also fails if path is a device, a pipe or a mount point. If only the directory cannot be synced,
// Freeze returns the error, but path has the new file.
//
// Freeze takes up to 48 MiB of [freehold.Default]. Larger maps also take temporary files in the
// directory of path, one and a half times as large as the new file. All processors sort them.
func Freeze[K comparable, V any](entries iter.Seq2[K, V], path string) error {
	t := frozenTypesOf[K, V]("hashmap.Freeze")
	t.hash.seed = hash.SeedOf([3]uint64{rand.Uint64(), rand.Uint64(), rand.Uint64()})
	err := t.freeze(path, func(records *buffer.Records) error {
		var record []byte
		for k, v := range entries {
			key, value := textOf(t.keyKind, &k), textOf(t.valueKind, &v)
			record = binary.BigEndian.AppendUint64(record[:0], hashOf(&t.hash, &k))
			record = binary.AppendUvarint(record, uint64(len(key)))
			record = append(append(record, key...), value...)
			if err := records.AppendBytes(record); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("freehold: hashmap.Freeze: %s: %w", path, err)
	}
	return nil
}

// freeze writes the records that collect appends to the file at path.
func (t *frozenTypes) freeze(path string, collect func(*buffer.Records) error) error {
	f, err := atomicfile.CreateRegular(path)
	if err != nil {
		return err
	}
	defer f.Close()
	buf := buffer.New(freehold.Default(), &buffer.Options{SpillAfter: freezeMemory, Dir: f.Dir()})
	defer buf.Close()
	records, err := buffer.NewRecords(buf, nil)
	if err != nil {
		return err
	}
	if err := collect(records); err != nil {
		return err
	}
	byHash := func(record []byte) []byte { return record[:hashBytes] }
	if err := records.SortBy(context.Background(), byHash, nil); err != nil {
		return err
	}
	guard := buf.Guard(func() { err = t.write(records, f.File) })
	if err = errors.Join(guard, err); err != nil {
		return err
	}
	return f.CommitSynced()
}

// write writes sorted records as a file. It writes the starts and the data side by side, and last the
// header, which has the size of the data.
func (t *frozenTypes) write(records *buffer.Records, file io.WriterAt) error {
	numbers := t.hash.seed.Numbers()
	id := uint32(numbers[0])
	buckets := uint64(max(records.Len()/perBucket, 1))
	starts := newBlockWriter(file, id, 1)
	data := newBlockWriter(file, id, dataOffset(buckets)/frozenBlock)

	var start, heads []byte
	next := uint64(0) // the first bucket without a start
	startAll := func(to uint64) {
		start = binary.LittleEndian.AppendUint64(start[:0], data.size)
		for ; next <= to; next++ { // those before to are empty
			starts.write(start)
		}
	}
	for b, group := range bucketsOf(records, buckets) {
		if again, ok := duplicate(group); ok {
			return fmt.Errorf("the key %.100q comes twice", again)
		}
		startAll(b)
		if t.heads {
			heads = appendHeads(heads[:0], group)
			data.write(heads)
		}
		for _, r := range group {
			_, entry := keyOfRecord(r)
			data.write(entry)
		}
		if data.err != nil {
			return data.err
		}
	}
	startAll(buckets)

	var header [frozenBlock]byte
	binary.LittleEndian.PutUint32(header[8:], frozenVersion)
	binary.NativeEndian.PutUint32(header[12:], frozenOrder)
	for i, n := range [...]uint64{uint64(records.Len()), buckets, data.size, numbers[0], numbers[1], numbers[2]} {
		binary.LittleEndian.PutUint64(header[16+8*i:], n)
	}
	copy(header[:], frozenMagic)
	copy(header[frozenTypesAt:], t.text)
	sums := binary.LittleEndian.AppendUint32(nil, crc32.Update(id, castagnoli, header[:]))
	sums = append(sums, starts.close()...)
	sums = append(sums, data.close()...)
	data.to.Write(sums)
	if err := errors.Join(starts.to.Flush(), data.to.Flush()); err != nil {
		return err
	}
	_, err := file.WriteAt(header[:], 0)
	return err
}

// bucketsOf yields the number and the records of each bucket that is not empty.
func bucketsOf(records *buffer.Records, buckets uint64) iter.Seq2[uint64, [][]byte] {
	return func(yield func(uint64, [][]byte) bool) {
		var group [][]byte
		at := uint64(0)
		for _, r := range records.All() {
			b, _ := bits.Mul64(binary.BigEndian.Uint64(r), buckets)
			if b != at && len(group) > 0 {
				if !yield(at, group) {
					return
				}
				group = group[:0]
			}
			at, group = b, append(group, r)
		}
		if len(group) > 0 {
			yield(at, group)
		}
	}
}

// keyOfRecord returns the length of a record's key, and the bytes of its key and value.
func keyOfRecord(r []byte) (keyLen int, entry []byte) {
	n, size := binary.Uvarint(r[hashBytes:])
	return int(n), r[hashBytes+size:]
}

// duplicate returns a key of two records, if there is one.
func duplicate(group [][]byte) (key []byte, ok bool) {
	for i, r := range group {
		n, entry := keyOfRecord(r)
		for _, before := range group[:i] {
			m, other := keyOfRecord(before)
			if string(before[:hashBytes]) == string(r[:hashBytes]) && string(other[:m]) == string(entry[:n]) {
				return entry[:n], true
			}
		}
	}
	return nil, false
}

// appendHeads appends the size of a bucket's heads, then the heads.
func appendHeads(dst []byte, group [][]byte) []byte {
	var heads [8 * perBucket]byte
	h := heads[:0]
	for _, r := range group {
		n, entry := keyOfRecord(r)
		h = append(h, r[hashBytes-1])
		h = binary.AppendUvarint(h, uint64(n))
		h = binary.AppendUvarint(h, uint64(len(entry)-n))
	}
	return append(binary.AppendUvarint(dst, uint64(len(h))), h...)
}

// A blockWriter writes blocks and keeps their checksums. A write after an error is a no-op.
type blockWriter struct {
	to   *bufio.Writer
	next uint32 // what the checksum of the next block starts from: the file's id plus its number
	sum  uint32 // checksum of the last block's bytes so far
	size uint64 // bytes written
	sums []byte // checksums of the complete blocks
	err  error
}

// newBlockWriter returns a writer of the blocks from the given one on.
func newBlockWriter(file io.WriterAt, id uint32, block uint64) *blockWriter {
	to := io.NewOffsetWriter(file, int64(block*frozenBlock))
	return &blockWriter{to: bufio.NewWriterSize(to, 1<<20), next: id + uint32(block)}
}

func (w *blockWriter) write(p []byte) {
	for len(p) > 0 && w.err == nil {
		if w.size%frozenBlock == 0 {
			w.sum = w.next
			w.next++
		}
		part := p[:min(len(p), int(frozenBlock-w.size%frozenBlock))]
		w.sum = crc32.Update(w.sum, castagnoli, part)
		_, w.err = w.to.Write(part)
		w.size += uint64(len(part))
		if w.size%frozenBlock == 0 {
			w.sums = binary.LittleEndian.AppendUint32(w.sums, w.sum)
		}
		p = p[len(part):]
	}
}

// close fills the last block with zeros and returns the checksums of all.
func (w *blockWriter) close() []byte {
	w.write(make([]byte, wholeBlocks(w.size)-w.size))
	return w.sums
}
