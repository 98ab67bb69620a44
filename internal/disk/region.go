// Region: the unit in which the file is written and reclaimed.
//
//	| record | record | ... | free | hash n | ... | hash 1 | footer 32 B |
//	0                       used                                 regionBytes
//
// The table, which grows down from the footer, has an entry for each record:
//
//	| hash of the key 8 | offset 2 | size 2 |                                      in units
//
// The footer:
//
//	| magic 4 | crc 4 | number of entries 4 | used 4, in units | sequence number 8 | 0, 8 B |
//
// crc is the checksum of the table and of the footer behind it, combined with the position.
//
// A region gets the next sequence number when it is opened. That number modulo the number of
// regions is the region's index in the file. So the latest sequence number determines all the
// others, and the store keeps no memory for a region.

package disk

import (
	"encoding/binary"
	"hash/crc32"
)

const (
	entryBytes  = 12
	footerBytes = 32
	footerMagic = 0x46525444
)

// A position is an offset in units, plus the sequence number of the region times its units. Unlike a
// Place, it is never used twice: each lap of the ring has other positions.
type position uint64

// mark combines a checksum with a position, by multiplicative hashing.
func (p position) mark(crc uint32) uint32 { return crc ^ uint32(uint64(p)*0x9E3779B97F4A7C15>>32) }

// geometry is the size and the number of the regions.
type geometry struct {
	region  int // bytes, a power of two of at least 4 KiB
	regions int
}

// offset returns the offset in the file of the region with an index.
func (g geometry) offset(index int) int64 { return headerBytes + int64(index)*int64(g.region) }

// index returns the index of the region that has, or had, a sequence number.
func (g geometry) index(seq uint64) int { return int(seq % uint64(g.regions)) }

// seqOf returns the sequence number of the region with an index, if opened is the latest sequence
// number of the store.
func (g geometry) seqOf(index int, opened uint64) uint64 {
	back := g.index(opened) - index
	if back < 0 {
		back += g.regions
	}
	return opened - uint64(back)
}

// place returns the place of an offset in the region with sequence number seq.
func (g geometry) place(seq uint64, off int) Place {
	return Place((g.offset(g.index(seq)) + int64(off)) / UnitBytes)
}

// locate returns the index of the region with a place, and the place's offset there. ok is false for
// a place outside of the regions.
func (g geometry) locate(at Place) (index, off int, ok bool) {
	from := int64(at)*UnitBytes - headerBytes
	if from < 0 || from >= int64(g.region)*int64(g.regions) {
		return 0, 0, false
	}
	return int(from / int64(g.region)), int(from % int64(g.region)), true
}

func (g geometry) position(seq uint64, off int) position {
	return position(seq*uint64(g.region/UnitBytes) + uint64(off/UnitBytes))
}

// An entry is a record's entry in the table of its region.
type entry struct {
	hash      uint64
	off, size int // in bytes
}

// entryAt returns the bytes of entry i of a region's table.
func entryAt(region []byte, i int) []byte {
	return region[len(region)-footerBytes-(i+1)*entryBytes:][:entryBytes]
}

func (e entry) put(b []byte) {
	binary.LittleEndian.PutUint64(b, e.hash)
	binary.LittleEndian.PutUint16(b[8:], uint16(e.off/UnitBytes))
	binary.LittleEndian.PutUint16(b[10:], uint16(e.size/UnitBytes))
}

func entryIn(b []byte) entry {
	return entry{
		hash: binary.LittleEndian.Uint64(b),
		off:  int(binary.LittleEndian.Uint16(b[8:])) * UnitBytes,
		size: int(binary.LittleEndian.Uint16(b[10:])) * UnitBytes,
	}
}

// putFooter writes the footer of a region whose table has count entries.
func (g geometry) putFooter(region []byte, seq uint64, count, used int) {
	footer := region[len(region)-footerBytes:]
	clear(footer)
	binary.LittleEndian.PutUint32(footer, footerMagic)
	binary.LittleEndian.PutUint32(footer[8:], uint32(count))
	binary.LittleEndian.PutUint32(footer[12:], uint32(used/UnitBytes))
	binary.LittleEndian.PutUint64(footer[16:], seq)
	binary.LittleEndian.PutUint32(footer[4:], g.footerSum(region, seq, count))
}

// footerSum returns the footer's crc.
func (g geometry) footerSum(region []byte, seq uint64, count int) uint32 {
	end := len(region) - footerBytes
	crc := crc32.Checksum(region[end+8:], castagnoli)
	crc = crc32.Update(crc, castagnoli, region[end-count*entryBytes:end])
	return g.position(seq, 0).mark(crc)
}

// count returns the number of entries that the footer at the end of tail has. ok is false if it is
// not the footer of the region with sequence number seq. count does not verify the checksum.
func (g geometry) count(tail []byte, seq uint64) (n int, ok bool) {
	footer := tail[len(tail)-footerBytes:]
	count := binary.LittleEndian.Uint32(footer[8:])
	ok = binary.LittleEndian.Uint32(footer) == footerMagic && binary.LittleEndian.Uint64(footer[16:]) == seq &&
		count <= uint32((g.region-footerBytes)/(entryBytes+UnitBytes))
	return int(count), ok
}

// checkTable reports whether the table at the end of tail has the right checksum, and all its entries
// refer to bytes of the region.
//
// Precondition: tail includes the whole table of count entries.
func (g geometry) checkTable(tail []byte, seq uint64, count int) bool {
	if binary.LittleEndian.Uint32(tail[len(tail)-footerBytes+4:]) != g.footerSum(tail, seq, count) {
		return false
	}
	for i := range count {
		if e := entryIn(entryAt(tail, i)); e.size < HeadBytes || e.off+e.size > g.region-footerBytes {
			return false
		}
	}
	return true
}
