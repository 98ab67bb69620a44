// Check: the invariants of Strings and of a Shared.

package intern

import "fmt"

// check returns what is wrong, or "".
func (s *Strings) check() string {
	if fault := s.store.check(); fault != "" {
		return fault
	}
	if fault := s.table.check(); fault != "" {
		return fault
	}
	return s.store.checkTables(s.table.used, func(v string) *record {
		return s.table.find(&s.store, s.hashOf(v), v)
	})
}

// check returns what is wrong, or "". The caller holds all locks.
func (s *Shared) check() string {
	if fault := s.store.check(); fault != "" {
		return fault
	}
	used := 0
	for i := range s.shards {
		t := &s.shards[i].table
		if fault := t.check(); fault != "" {
			return fmt.Sprintf("shard %d: %s", i, fault)
		}
		used += t.used
	}
	return s.store.checkTables(used, func(v string) *record {
		sh, h := s.shard(v)
		return sh.table.find(&s.store, h, v)
	})
}

// checkTables returns what is wrong with tables that have used slots, or "". find returns the
// record of a string by the tables.
func (s *store) checkTables(used int, find func(v string) *record) string {
	if used != s.live() {
		return fmt.Sprintf("%d strings and %d slots", s.live(), used)
	}
	for id := range s.ids.Load() {
		v, ok := s.value(ID(id))
		if !ok {
			continue
		}
		if r := find(v); r != s.record(*s.refs.word(id)) {
			return fmt.Sprintf("the table has another record for string %d", id)
		}
	}
	return ""
}

// check returns what is wrong with the records and ids, or "".
func (s *store) check() string {
	live, bytes, longs := 0, 0, 0
	for id := range s.ids.Load() {
		at := *s.refs.word(id)
		if at == none {
			continue
		}
		r := s.record(at)
		if r.id != id {
			return fmt.Sprintf("the record of string %d has the ID %d", id, r.id)
		}
		if s.counted && *s.counts.word(id) == 0 {
			return fmt.Sprintf("string %d has no reference", id)
		}
		live++
		bytes += len(r.text())
		if r.size == isLong {
			longs++
		}
	}
	free := 0
	for id := s.freeID; id != none; id = *s.counts.word(id) {
		if *s.refs.word(id) != none {
			return fmt.Sprintf("string %d is live and free", id)
		}
		free++
	}
	if live != s.live() || free != int(s.freeIDs) || bytes != s.bytes || longs != s.longs {
		return fmt.Sprintf("%d strings of %d bytes, %d long, and %d free IDs, where the counts are %d, %d, %d and %d",
			live, bytes, longs, free, s.live(), s.bytes, s.longs, s.freeIDs)
	}
	for size, at := range s.free {
		if (at != none) != (s.sizes>>size&1 == 1) {
			return fmt.Sprintf("free records of %d words begin at %d, and the set is %#x", size, at, s.sizes)
		}
	}
	return ""
}

// check returns what is wrong with the segments, or "".
func (t *table) check() string {
	used := 0
	for i := 0; i < len(t.directory); {
		e := &t.directory[i]
		n := 1 << (t.depth - e.depth)
		for j := range n {
			if t.directory[i+j] != *e {
				return fmt.Sprintf("entries %d and %d of the directory differ", i, i+j)
			}
		}
		if fault := e.check(uint32(i) >> (t.depth - e.depth)); fault != "" {
			return fmt.Sprintf("segment %d: %s", i, fault)
		}
		used += int(e.head().used)
		i += n
	}
	if used != t.used {
		return fmt.Sprintf("%d slots in use, and the count is %d", used, t.used)
	}
	return ""
}

// check returns what is wrong with a segment whose hashes begin with prefix, or "".
func (e *entry) check(prefix uint32) string {
	h := e.head()
	if h.total == 0 {
		return ""
	}
	if h.used > h.most || h.most > e.homes || e.homes+2*stride > h.total {
		return fmt.Sprintf("%d used of %d of %d homes of %d slots", h.used, h.most, e.homes, h.total)
	}
	slots := e.all()
	for p, v := range slots[len(slots)-stride:] {
		if v != noSlot {
			return fmt.Sprintf("slot %d of the last %d is in use", p, stride)
		}
	}
	used, last, free := uint32(0), uint32(0), -1
	for p, v := range slots {
		if v == noSlot {
			free = p
			continue
		}
		home := int(e.home(v.hash()))
		switch {
		case uint64(v.hash())>>(hashBits-e.depth) != uint64(prefix):
			return fmt.Sprintf("slot %d has the hash %#x", p, v.hash())
		case v.hash() < last:
			return fmt.Sprintf("slot %d has a smaller hash than the one before", p)
		case home > p || home <= free:
			return fmt.Sprintf("slot %d has its home at %d, and slot %d is free", p, home, free)
		}
		last = v.hash()
		used++
	}
	if used != h.used {
		return fmt.Sprintf("%d slots in use, and the count is %d", used, h.used)
	}
	return ""
}
