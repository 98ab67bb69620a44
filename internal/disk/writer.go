// Writer: the goroutine that writes full regions and reclaims old ones.
//
//	reclaimed next                                       opened
//	v                                                    v
//	| old | old | old | ... | old | being written | open | clean | clean | (old again)
//
// The owner refers to no record of a clean region, so the region may be overwritten. To reclaim an
// old region, the writer reads its table, and the owner forgets the records there. The writer reads
// the records themselves only if some are rewritten.
//
// The writer reads by pread, not by io_uring. A goroutine that waits for io_uring runs again only
// after others have used up their time slices, and regions would be reclaimed too slowly.

package disk

import (
	"errors"
	"io"
)

// reserve reserves room for a record in the open region, and returns its buffer and the offset. If
// the region is full, reserve opens the next. b is nil if there is no free buffer or no clean
// region, or if the store is closed or off.
func (s *Store) reserve(hash uint64, size int) (b *buffer, off int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.off.Load() != nil {
		return nil, 0
	}
	if !s.started {
		s.started = true
		go s.writeAll()
	}
	for {
		if s.open != nil {
			if off, ok := s.open.add(hash, size); ok {
				return s.open, off
			}
			s.sealOpen()
		}
		if len(s.free) == 0 || s.clean == 0 {
			return nil, 0
		}
		s.open, s.free = s.free[len(s.free)-1], s.free[:len(s.free)-1]
		s.clean--
		// begin comes first: a reader that sees the new number in opened finds the buffer.
		s.open.begin(s.opened.Load() + 1)
		s.opened.Add(1)
	}
}

// sealOpen passes the open region to the writer. It does not block, since the channel has room for
// all buffers.
func (s *Store) sealOpen() {
	if s.open != nil {
		s.sealed <- s.open
		s.open = nil
	}
}

func (s *Store) writeAll() {
	defer close(s.writerDone)
	s.makeRoom()
	s.wrote()
	for b := range s.sealed {
		s.write(b)
		b.release()
		s.mu.Lock()
		s.free = append(s.free, b)
		s.mu.Unlock()
		s.makeRoom()
		s.wrote()
	}
}

// write adds the checksums and the footer to a sealed region, and writes it to the file.
func (s *Store) write(b *buffer) {
	b.filling.Wait()
	if s.off.Load() != nil {
		return
	}
	seq := b.seq.Load()
	for i := range b.count {
		e := entryIn(entryAt(b.mem, i))
		seal(b.mem[e.off:e.off+e.size], s.position(seq, e.off))
	}
	s.putFooter(b.mem, seq, b.count, b.used)
	// Leave out a large gap between the records and the table.
	end, table := pagesUp(b.used), (len(b.mem)-footerBytes-b.count*entryBytes)&^(pageBytes-1)
	if table-end < leastGap {
		end, table = len(b.mem), len(b.mem)
	}
	for _, part := range [][2]int{{0, end}, {table, len(b.mem)}} {
		if p := b.mem[part[0]:part[1]]; len(p) > 0 {
			if _, err := s.writeAt(p, s.offset(s.index(seq))+int64(part[0])); err != nil {
				s.counts.writeErrors.Add(1)
				s.turnOff("write", err)
				return
			}
			s.counts.writtenBytes.Add(uint64(len(p)))
		}
	}
}

// makeRoom reclaims the oldest regions until wantClean are clean.
func (s *Store) makeRoom() {
	for {
		s.mu.Lock()
		enough := s.clean >= s.wantClean || s.closed || s.off.Load() != nil
		oldest := s.opened.Load() + uint64(s.clean) + 1 - uint64(s.regions)
		s.mu.Unlock()
		if enough {
			return
		}
		s.reclaim(oldest)
		s.mu.Lock()
		s.clean++
		s.mu.Unlock()
	}
}

// reclaim makes the owner forget all places in a region, after Rewrite of the records that
// chooseRewrites has chosen.
func (s *Store) reclaim(seq uint64) {
	s.counts.reclaimed.Add(1)
	if !s.readTable(seq) {
		s.counts.lost.Add(1)
		first := s.place(seq, 0)
		s.owner.ForgetRange(first, first+Place(s.region/UnitBytes))
		return
	}
	s.chooseRewrites(seq)
	for i, e := range s.table {
		at := s.place(seq, e.off)
		if s.priorities[i] != 0 {
			if r, ok := verified(s.scratch[e.off:e.off+e.size], s.position(seq, e.off)); ok {
				r.Hash, r.rewritten = e.hash, true
				s.owner.Rewrite(at, &r)
			} else {
				s.counts.damaged.Add(1)
			}
		}
		s.owner.Forget(e.hash, at)
	}
}

// readTable reads the table of a region to s.table, and reports whether it is whole.
func (s *Store) readTable(seq uint64) bool {
	read := func(n int) bool {
		from := s.region - n
		return s.readFull(s.scanAt, s.scratch[from:], s.offset(s.index(seq))+int64(from)) == nil
	}
	n := min(tailBytes, s.region)
	if !read(n) {
		return false
	}
	count, ok := s.count(s.scratch[s.region-n:], seq)
	if need := pagesUp(count*entryBytes + footerBytes); ok && need > n && !read(need) {
		return false
	}
	if !ok || !s.checkTable(s.scratch, seq, count) {
		s.counts.damaged.Add(1)
		return false
	}
	s.table = s.table[:0]
	for i := range count {
		s.table = append(s.table, entryIn(entryAt(s.scratch, i)))
	}
	return true
}

// chooseRewrites chooses the records with the highest priority, up to half of the region, and sets
// s.priorities to 0 for all others. If it has chosen any, it reads the records of the region to
// s.scratch.
func (s *Store) chooseRewrites(seq uint64) {
	s.priorities = s.priorities[:0]
	var bytes [maxPriority + 1]int
	for _, e := range s.table {
		w := min(max(s.owner.Priority(e.hash, s.place(seq, e.off)), 0), maxPriority)
		s.priorities = append(s.priorities, uint8(w))
		bytes[w] += e.size
	}
	left := s.region / 2
	for w := maxPriority; w > 0; w-- {
		bytes[w] = min(bytes[w], left)
		left -= bytes[w]
	}
	used := 0
	for i, e := range s.table {
		w := s.priorities[i]
		if w == 0 || e.size > bytes[w] {
			s.priorities[i] = 0
			continue
		}
		bytes[w] -= e.size
		used = max(used, pagesUp(e.off+e.size))
	}
	if used > 0 && s.readFull(s.scanAt, s.scratch[:used], s.offset(s.index(seq))) != nil {
		clear(s.priorities)
	}
}

// readFull reads len(b) bytes by readAt. It counts errors, and turns the store off after
// maxReadErrors.
func (s *Store) readFull(readAt func(b []byte, off int64) (int, error), b []byte, off int64) error {
	n, err := readAt(b, off)
	if n == len(b) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF // the file was truncated
	}
	if s.counts.readErrors.Add(1) >= maxReadErrors {
		s.turnOff("read", err)
	}
	return err
}
