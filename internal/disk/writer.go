// Writer: the goroutine that writes regions and empties old ones.
//
//	next to be emptied                                   opened
//	v                                                    v
//	| old | old | old | ... | old | being written | open | clean | clean | (old again)
//
// Clean regions are empty and may be overwritten. A region becomes clean when the owner refers to
// none of its records any more. Its table of hashes tells which records it has, so the rest of the
// region is read only if something in it is written again.
//
// The writer reads by pread, not by the ring: a goroutine that waits for the ring gets a processor
// of Go's scheduler only after others have used theirs up, and regions would be emptied too slowly.

package disk

import (
	"errors"
	"io"
)

// reserve finds room in the open region and returns its buffer, or nil.
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
		// The buffer has the region before any reader knows of it: see Read.
		s.open.begin(s.opened.Load() + 1)
		s.opened.Add(1)
	}
}

// sealOpen gives the open region to the writer. The channel has room for all buffers.
func (s *Store) sealOpen() {
	if s.open != nil {
		s.sealed <- s.open
		s.open = nil
	}
}

func (s *Store) writeAll() {
	defer close(s.written)
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

// write writes a sealed region to the file.
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
	s.putFoot(b.mem, seq, b.count, b.used)
	// A large gap between the records and the table is not written.
	end, table := pagesUp(b.used), (len(b.mem)-footBytes-b.count*entryBytes)&^(pageBytes-1)
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

// makeRoom empties the oldest regions until enough are clean.
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

// reclaim has the owner forget the records of a region, except those that are written again.
func (s *Store) reclaim(seq uint64) {
	s.counts.reclaimed.Add(1)
	if !s.readTable(seq) {
		s.counts.lost.Add(1)
		first := s.place(seq, 0)
		s.owner.Lost(first, first+Place(s.region/UnitBytes))
		return
	}
	s.chooseAgain(seq)
	for i, e := range s.table {
		at := s.place(seq, e.off)
		if s.worth[i] != 0 {
			if r, ok := verified(s.scratch[e.off:e.off+e.size], s.position(seq, e.off)); ok {
				r.Hash, r.again = e.hash, true
				s.owner.Rewrite(at, &r)
			} else {
				s.counts.damaged.Add(1)
			}
		}
		s.owner.Leave(e.hash, at)
	}
}

// readTable reads the table of a region to s.table.
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
	if need := pagesUp(count*entryBytes + footBytes); ok && need > n && !read(need) {
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

// chooseAgain sets s.worth to 0 for all records but the ones to be written again: those with the
// highest worth first, up to half of the region. If there are any, it reads the region to
// s.scratch.
func (s *Store) chooseAgain(seq uint64) {
	s.worth = s.worth[:0]
	var bytes [maxWorth + 1]int
	for _, e := range s.table {
		w := min(max(s.owner.Worth(e.hash, s.place(seq, e.off)), 0), maxWorth)
		s.worth = append(s.worth, uint8(w))
		bytes[w] += e.size
	}
	left := s.region / 2
	for w := maxWorth; w > 0; w-- {
		bytes[w] = min(bytes[w], left)
		left -= bytes[w]
	}
	used := 0
	for i, e := range s.table {
		w := s.worth[i]
		if w == 0 || e.size > bytes[w] {
			s.worth[i] = 0
			continue
		}
		bytes[w] -= e.size
		used = max(used, pagesUp(e.off+e.size))
	}
	if used > 0 && s.readFull(s.scanAt, s.scratch[:used], s.offset(s.index(seq))) != nil {
		clear(s.worth)
	}
}

// readFull reads len(b) bytes by readAt. An error is counted, and the store turns itself off at the
// eighth.
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
