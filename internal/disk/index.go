// Index: the file with the owner's index, from a clean stop until the next start.
//
//	| magic 8 | region bytes 8 | regions 8 | first 8 | opened 8 | clean 8 | owner's bytes | crc 4 |
//
// first, opened and clean are fields of Store. Open removes the file before the store writes a
// region. So a killed process leaves no index, and the next store begins empty, with other sequence
// numbers.

package disk

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"

	"github.com/freehold-go/freehold/internal/file/atomicfile"
	"github.com/freehold-go/freehold/internal/file/filelock"
	"github.com/freehold-go/freehold/internal/vm"
)

const indexHead = "fhindex1"

const (
	indexWords     = 5
	indexHeadBytes = len(indexHead) + indexWords*8
	sumBytes       = 4
)

func (s *Store) indexPath() string { return s.file.Name() + ".index" }

// saveIndex syncs the store's file, and then writes the index file. After an error there is no index
// file, unless only the sync of the directory has failed.
func (s *Store) saveIndex(save func(io.Writer) error) error {
	if err := vm.SyncFile(s.file); err != nil {
		return err
	}
	f, err := atomicfile.CreateRegular(s.indexPath())
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Chmod(0o600); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	buffered := bufio.NewWriterSize(f, 64<<10)
	sum := crc32.New(castagnoli)
	w := io.MultiWriter(buffered, sum)
	head := []byte(indexHead)
	for _, word := range [indexWords]uint64{uint64(s.region), uint64(s.regions), s.first, s.opened.Load(), uint64(s.clean)} {
		head = binary.LittleEndian.AppendUint64(head, word)
	}
	if _, err := w.Write(head); err != nil {
		return err
	}
	if err := save(w); err != nil {
		return err
	}
	if _, err := buffered.Write(binary.LittleEndian.AppendUint32(nil, sum.Sum32())); err != nil {
		return err
	}
	if err := buffered.Flush(); err != nil {
		return err
	}
	return f.CommitSynced()
}

// loadIndex loads the index of the last clean stop, if there is one, and removes its file. warm
// reports whether load has succeeded. If not, loadIndex logs why the store begins empty. It returns
// an error only if it cannot remove the file.
func (s *Store) loadIndex(load func(io.Reader) error) (warm bool, err error) {
	path := s.indexPath()
	if load != nil {
		err := s.readIndex(path, load)
		if warm = err == nil; !warm {
			logEmpty(s.logger, s.file, err)
		}
	}
	if err := os.Remove(path); errors.Is(err, fs.ErrNotExist) {
		return warm, nil
	} else if err != nil {
		return false, err
	}
	return warm, filelock.SyncEntry(path)
}

func (s *Store) readIndex(path string, load func(io.Reader) error) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("it was not closed: its process was killed, or ended without Close")
	}
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err = f.Stat()
	if err != nil {
		return err
	}
	owners, err := s.verifyIndex(f, info.Size())
	if err != nil {
		return err
	}
	return load(bufio.NewReaderSize(owners, 64<<10))
}

var errIndex = errors.New("its index is damaged, or of a file of another size")

// verifyIndex verifies an index file of size bytes, sets the store's numbers, and returns the
// owner's bytes.
func (s *Store) verifyIndex(f io.ReaderAt, size int64) (owners io.Reader, err error) {
	end := size - sumBytes
	if end < int64(indexHeadBytes) {
		return nil, errIndex
	}
	sum := crc32.New(castagnoli)
	if _, err := io.CopyBuffer(struct{ io.Writer }{sum}, io.NewSectionReader(f, 0, end), make([]byte, 64<<10)); err != nil {
		return nil, err
	}
	var head [indexHeadBytes]byte
	var want [sumBytes]byte
	for _, part := range []struct {
		b  []byte
		at int64
	}{{head[:], 0}, {want[:], end}} {
		if _, err := io.ReadFull(io.NewSectionReader(f, part.at, int64(len(part.b))), part.b); err != nil {
			return nil, err
		}
	}
	if binary.LittleEndian.Uint32(want[:]) != sum.Sum32() || string(head[:len(indexHead)]) != indexHead {
		return nil, errIndex
	}
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(head[len(indexHead)+8*i:]) }
	first, opened, clean := word(2), word(3), word(4)
	if word(0) != uint64(s.region) || word(1) != uint64(s.regions) || first == 0 || first > opened+1 ||
		opened > maxSeq || clean > uint64(s.regions) {
		return nil, errIndex
	}
	s.first, s.clean = first, int(clean)
	s.opened.Store(opened)
	return io.NewSectionReader(f, int64(indexHeadBytes), end-int64(indexHeadBytes)), nil
}
