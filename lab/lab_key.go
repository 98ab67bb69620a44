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
	binary.BigEndian.PutUint64(b[:], valueOf(uint64(i)))
	hex.Encode(key[:], b[:])
	return key
}

// valueOf is splitmix64, which has another result for each number.
func valueOf(number uint64) uint64 {
	x := (number + 1) * 0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}
