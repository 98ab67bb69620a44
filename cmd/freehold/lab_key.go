package main

import (
	"encoding/binary"
	"encoding/hex"
)

// A keyText is the key of an entry: 16 hexadecimal digits.
type keyText [16]byte

// keyOf returns the key of entry i, which no other entry has.
func keyOf(i int) (key keyText) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], recordKey(uint64(i)))
	hex.Encode(key[:], b[:])
	return key
}
