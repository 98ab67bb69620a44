// Keys: how they are stored in front of their records.
//
// With Options.ThenRecord a key and its record are compared as one string. So that
// a key which begins another one comes before it, whatever the records are, a stored
// key ends with 0 0, and a 0 in it becomes 0 255.

package extsort

import (
	"bytes"
	"encoding/binary"
	"math"
)

// store writes a record and its key to dst, in stored form, and returns its size:
// 0 if there is no room.
func (l *layout) store(dst, record []byte) (size int) {
	room := dst[keyedBytes:]
	key := l.key(room[:0:len(room)], record)
	if len(key) > len(room) || len(record) > len(room)-len(key) {
		return 0
	}
	if l.thenRecord {
		if key = endKey(room, key); len(record) > len(room)-len(key) || key == nil {
			return 0
		}
	}
	if uint64(len(key)) > math.MaxInt32 || uint64(len(record)) > math.MaxInt32 {
		return 0
	}
	copy(room, key) // does nothing if the key is there
	copy(room[len(key):], record)
	binary.LittleEndian.PutUint32(dst, uint32(len(key)))
	binary.LittleEndian.PutUint32(dst[4:], uint32(len(record)))
	return keyedBytes + len(key) + len(record)
}

// endKey returns the key, which may be at the beginning of room, with its zeros
// escaped and its end, in room, or nil if there is no room.
func endKey(room, key []byte) []byte {
	zeros := bytes.Count(key, []byte{0})
	n := len(key) + zeros + 2
	if n > len(room) {
		return nil
	}
	if zeros == 0 {
		copy(room, key)
	} else {
		to := n - 2
		for i := len(key) - 1; i >= 0; i-- {
			b := key[i]
			if b == 0 {
				to--
				room[to] = 255
			}
			to--
			room[to] = b
		}
	}
	room[n-2], room[n-1] = 0, 0
	return room[:n]
}
