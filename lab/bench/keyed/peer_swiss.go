// Peer: github.com/cockroachdb/swiss.

//go:build peer_swiss

package main

import (
	"strings"

	"github.com/cockroachdb/swiss"
)

type numbers = *swiss.Map[uint64, uint64]

func newNumbers() numbers                               { return swiss.New[uint64, uint64](0) }
func lenNumbers(m numbers) int                          { return m.Len() }
func putNumber(m numbers, k, v uint64)                  { m.Put(k, v) }
func deleteNumber(m numbers, k uint64)                  { m.Delete(k) }
func getNumber(m numbers, k uint64) (v uint64, ok bool) { return m.Get(k) }

func getNumbers(m numbers, keys, values *[batch]uint64, found *[batch]bool) {
	for i, k := range keys {
		values[i], found[i] = m.Get(k)
	}
}

type texts = *swiss.Map[string, pair]

func newTexts(int) texts                          { return swiss.New[string, pair](0) }
func putText(m texts, k string, v pair)           { m.Put(strings.Clone(k), v) }
func getText(m texts, k string) (v pair, ok bool) { return m.Get(k) }
