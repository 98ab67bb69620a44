// Peer: freehold's hashmap.Map.

//go:build peer_map

package main

import (
	"github.com/freehold-go/freehold/hashmap"
)

type numbers = *hashmap.Map[uint64, uint64]

func newNumbers() numbers                               { return hashmap.New[uint64, uint64](newHeap(), nil) }
func lenNumbers(m numbers) int                          { return m.Len() }
func putNumber(m numbers, k, v uint64)                  { must(m.Put(k, v)) }
func deleteNumber(m numbers, k uint64)                  { m.Delete(k) }
func getNumber(m numbers, k uint64) (v uint64, ok bool) { return m.Get(k) }

func getNumbers(m numbers, keys, values *[batch]uint64, found *[batch]bool) {
	m.GetMany(keys[:], values[:], found[:])
}

type texts = *hashmap.Map[string, pair]

func newTexts(int) texts                          { return hashmap.New[string, pair](newHeap(), nil) }
func putText(m texts, k string, v pair)           { must(m.Put(k, v)) }
func getText(m texts, k string) (v pair, ok bool) { return m.Get(k) }
