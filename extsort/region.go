// Region: the memory of one worker, which a source fills with records to sort.
//
//	mem  | text        | tail |   free   | entries |
//	     0             text   text+tail  len(mem)-16n
//
// The text holds whole stored records, and each has an entry. The tail is input that has no
// entries yet: part of a record, or whole records once the entries' room is used up. The tail
// moves to the region that is filled next.
//
// One worker at a time holds the source and fills its region; the others sort and write.

package extsort

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/freehold-go/freehold/internal/keysort"
)

type region struct {
	mem  []byte
	text int // bytes
	tail int // bytes
	n    int // entries
	seq  int // number of this fill, among the fills of all regions

	longest int // bytes of the longest stored record of all fills
}

// entriesOf returns the last n entries that fit in mem. The end of mem must be a multiple of
// 16. Only entriesOf and index.at convert memory to other types.
func entriesOf(mem []byte, n int) []keysort.Entry {
	if n == 0 {
		return nil
	}
	first := mem[len(mem)-n*keysort.EntryBytes:]
	return unsafe.Slice((*keysort.Entry)(unsafe.Pointer(unsafe.SliceData(first))), n)
}

// entries returns the entries in reverse order of their records.
func (r *region) entries() []keysort.Entry { return entriesOf(r.mem, r.n) }

func (r *region) free() int { return len(r.mem) - r.n*keysort.EntryBytes - r.text - r.tail }

func (r *region) clear() { r.text, r.tail, r.n = 0, 0, 0 }

// takeTail moves the tail of from to the beginning of r, which is empty.
func (r *region) takeTail(from *region) {
	tail := from.mem[from.text:][:from.tail]
	from.tail = 0
	r.clear()
	r.tail = copy(r.mem, tail)
}

// add appends the next size bytes to the text, a stored record, and adds its entry. The bytes
// to compare are n at offset at. There must be room for the entry.
func (r *region) add(at, n, size int) {
	r.n++
	entriesOf(r.mem, r.n)[0] = keysort.Entry{Word: keysort.Word(r.mem[at:at+n], 0), At: uint32(at), N: uint32(n)}
	r.text += size
	r.longest = max(r.longest, size)
}

// sort cuts the entries into up to pieces parts, sorts each, and returns them.
func (r *region) sort(ctx context.Context, l *layout, pieces int, stop *atomic.Bool) ([][]keysort.Entry, error) {
	e := r.entries()
	slices.Reverse(e)
	ties := 0
	if l.ties {
		ties = 1
		if l.descending {
			ties = -1
		}
	}
	pieces = max(1, min(pieces, len(e)/minPiece))
	sorted := make([][]keysort.Entry, pieces)
	err := all(ctx, pieces, func(_ context.Context, i int) error {
		p := e[len(e)/pieces*i : len(e)/pieces*(i+1)]
		if i == pieces-1 {
			p = e[len(e)/pieces*i:]
		}
		sorter := keysort.Sorter{Text: r.mem[:r.text], Ties: ties, Stop: stop}
		sorter.Sort(p)
		if l.descending {
			slices.Reverse(p)
		}
		sorted[i] = p
		return nil
	})
	return sorted, err
}

// minPiece is the least number of entries to sort in a goroutine of their own.
const minPiece = 4096

// A source fills regions with the records of all inputs, one input after the other.
type source struct {
	l         *layout
	rawLayout *layout // of the inputs; it differs from l if records are stored with keys
	inputs    []io.Reader
	chunk     int // bytes to read at a time
	progress  *meter
	raw       []byte // the scanner's memory

	mu      sync.Mutex // held by the worker that fills its region
	next    int        // index of the input to open next
	in      *input     // the current input
	last    *region    // the region that was filled last
	scanner *scanner   // of the current input, if records are stored with keys
	done    bool       // all inputs have ended
	fed     int        // fills
}

// open returns the next input, or false after the last one.
func (s *source) open() (input, bool) {
	if s.next == len(s.inputs) {
		s.done = true
		return input{}, false
	}
	s.next++
	return input{in: s.inputs[s.next-1], source: s.next - 1, progress: s.progress}, true
}

// fill fills r and overwrites its old records.
func (s *source) fill(ctx context.Context, r *region) error {
	if s.last != nil {
		r.takeTail(s.last)
	} else {
		r.clear()
	}
	s.last = r
	r.seq = s.fed
	s.fed++
	if s.l.kind == kindKeyed {
		return s.fillKeyed(ctx, r)
	}
	full, err := s.index(r)
	for !full && err == nil {
		if s.in == nil || s.in.over {
			in, ok := s.open()
			if !ok {
				return nil
			}
			s.in = &in
		}
		if err = s.more(ctx, r); err == errNoRoom {
			return nil
		}
		if err == nil {
			full, err = s.index(r)
		}
	}
	return err
}

// more reads more of the input to the tail of r. At the end of the input it completes the
// last line. It returns errNoRoom if the region is full.
func (s *source) more(ctx context.Context, r *region) error {
	rest := r.mem[r.text:][:r.tail]
	if s.in.ended {
		n, err := s.in.endRecord(s.l, rest)
		r.tail += n
		return err
	}
	// Leave half of the free bytes to entries, unless the region has no record yet:
	// the first one may need all of them.
	n := min(s.chunk, r.free()/2)
	if r.n == 0 && n < s.chunk {
		n = min(s.chunk, r.free()-keysort.EntryBytes-1)
	}
	if n < minRead(r) {
		if r.n == 0 {
			return s.tooLong(r.tail)
		}
		return errNoRoom
	}
	n, err := s.in.full(ctx, r.mem[r.text+r.tail:][:n])
	r.tail += n
	return err
}

// errNoRoom says that a region has no room for more input.
var errNoRoom = errors.New("no room in the region")

// minRead is the fewest bytes that are worth a read.
func minRead(r *region) int { return min(len(r.mem)/64, 4096) }

// index moves the whole records of the tail to the text. It reports whether it had to stop
// because the region had no room for another entry.
func (s *source) index(r *region) (full bool, err error) {
	end := r.text + r.tail
	for {
		data := r.mem[r.text:end]
		r.tail = len(data)
		at, n, size := s.l.first(data)
		switch {
		case size > s.l.maxStored, size == 0 && (len(data) > s.l.maxStored || s.l.needs(data) > uint64(s.l.maxStored)):
			return false, s.tooLong(len(data))
		case size == 0:
			return false, nil
		case len(r.mem)-(r.n+1)*keysort.EntryBytes < end+1:
			return true, nil
		}
		r.add(r.text+at, n, size)
	}
}

func (s *source) tooLong(seen int) error {
	return &TooLongError{Source: s.in.source, Offset: s.in.read - int64(seen), Max: s.l.maxStored - s.l.frameBytes()}
}

// fillKeyed is fill for records that are stored with their keys.
func (s *source) fillKeyed(ctx context.Context, r *region) error {
	for {
		if s.scanner == nil {
			in, ok := s.open()
			if !ok {
				return nil
			}
			s.scanner = newScanner(s.rawLayout, in, s.raw, s.l.maxStored-keyedBytes, s.chunk)
		}
		for {
			if s.scanner.pending == nil {
				if r.n&1023 == 0 && ctx.Err() != nil {
					return context.Cause(ctx)
				}
				_, raw, err := s.scanner.next(ctx)
				if err == io.EOF {
					s.scanner = nil
					break
				}
				if err != nil {
					return err
				}
				s.scanner.pending = s.rawLayout.record(raw)
			}
			free := r.free() - keysort.EntryBytes
			if free < keyedBytes {
				return nil
			}
			size := s.l.store(r.mem[r.text:][:free], s.scanner.pending)
			if size > s.l.maxStored || size == 0 && r.n == 0 {
				return s.scanner.tooLong()
			}
			if size == 0 {
				return nil
			}
			s.scanner.pending = nil
			at, n, _ := s.l.first(r.mem[r.text:][:size])
			r.add(r.text+at, n, size)
		}
	}
}
