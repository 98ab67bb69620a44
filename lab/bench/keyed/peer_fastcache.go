// Peer: github.com/VictoriaMetrics/fastcache, with room for all entries. It drops
// entries where its buckets differ in load, so a get may miss.

//go:build peer_fastcache

package main

import (
	"encoding/binary"
	"unsafe"

	"github.com/VictoriaMetrics/fastcache"
)

type texts = *fastcache.Cache

// newTexts gives each entry twice what it takes: 4 B of lengths, key and value.
func newTexts(n int) texts { return fastcache.New(2 * n * (4 + stringBytes + 16)) }

func putText(m texts, k string, v pair) {
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:], v.a)
	binary.LittleEndian.PutUint64(b[8:], v.b)
	m.Set(unsafe.Slice(unsafe.StringData(k), len(k)), b[:])
}

func getText(m texts, k string) (v pair, ok bool) {
	var room [16]byte
	b := m.Get(room[:0], unsafe.Slice(unsafe.StringData(k), len(k)))
	if len(b) < 16 {
		return v, false
	}
	return pair{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])}, true
}
