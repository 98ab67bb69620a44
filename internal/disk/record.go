// Record: the layout of a record in a region.
//
//	| crc 4 | value bytes 4 | key bytes 2 | 0, 2 B | expires 4 | flags 8 | version 8 | key | value |
//
// Numbers are little-endian. crc is the CRC-32C of the other bytes, combined with the record's
// position: the sequence number of its region and its offset there. So a record that an older lap
// of the ring left at the same place has a wrong checksum. The writer computes the checksum when it
// writes the region.

package disk

import (
	"encoding/binary"
	"hash/crc32"
)

// Meta is the part of a record that only the owner understands.
type Meta struct {
	Flags   uint64
	Version uint64
	Expires uint32
}

// A Record is a key with its value and Meta.
type Record struct {
	Hash       uint64 // of Key, by the owner's hash function
	Key, Value []byte
	Meta

	rewritten bool // set for Rewrite: Append counts it in Stats.Rewritten
}

const maxKeyBytes = 1<<16 - 1

// Size returns the bytes that a record with a key and a value of these sizes takes in its region, a
// multiple of UnitBytes. Its entry in the region's table takes 12 B more.
func Size(keyBytes, valueBytes int) int {
	return (HeadBytes + keyBytes + valueBytes + UnitBytes - 1) &^ (UnitBytes - 1)
}

// put writes r to b, without the checksum.
func (r *Record) put(b []byte) {
	binary.LittleEndian.PutUint32(b[4:], uint32(len(r.Value)))
	binary.LittleEndian.PutUint16(b[8:], uint16(len(r.Key)))
	binary.LittleEndian.PutUint16(b[10:], 0)
	binary.LittleEndian.PutUint32(b[12:], r.Expires)
	binary.LittleEndian.PutUint64(b[16:], r.Flags)
	binary.LittleEndian.PutUint64(b[24:], r.Version)
	copy(b[HeadBytes+copy(b[HeadBytes:], r.Key):], r.Value)
}

// recordIn returns the record at the start of b. Key and Value alias b. ok is false if the lengths
// exceed b. recordIn does not verify the checksum.
func recordIn(b []byte) (r Record, ok bool) {
	if len(b) < HeadBytes {
		return r, false
	}
	value, key := binary.LittleEndian.Uint32(b[4:]), int(binary.LittleEndian.Uint16(b[8:]))
	if room := len(b) - HeadBytes - key; room < 0 || uint64(value) > uint64(room) {
		return r, false
	}
	r.Key = b[HeadBytes:][:key]
	r.Value = b[HeadBytes+key:][:value]
	r.Expires = binary.LittleEndian.Uint32(b[12:])
	r.Flags = binary.LittleEndian.Uint64(b[16:])
	r.Version = binary.LittleEndian.Uint64(b[24:])
	return r, true
}

// verified returns the record at the start of b. ok is false if its checksum does not match its
// bytes and position p.
func verified(b []byte, p position) (r Record, ok bool) {
	if r, ok = recordIn(b); !ok {
		return r, false
	}
	return r, binary.LittleEndian.Uint32(b) == checksum(b[4:HeadBytes+len(r.Key)+len(r.Value)], p)
}

// seal computes the checksum of the record at the start of b, and writes it there.
func seal(b []byte, p position) {
	if r, ok := recordIn(b); ok {
		binary.LittleEndian.PutUint32(b, checksum(b[4:HeadBytes+len(r.Key)+len(r.Value)], p))
	}
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(b []byte, p position) uint32 { return p.mark(crc32.Checksum(b, castagnoli)) }
