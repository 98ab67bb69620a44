// Peer: Go's map.

//go:build peer_gomap

package main

import "strings"

type numbers = map[uint64]uint64

func newNumbers() numbers                               { return numbers{} }
func lenNumbers(m numbers) int                          { return len(m) }
func putNumber(m numbers, k, v uint64)                  { m[k] = v }
func deleteNumber(m numbers, k uint64)                  { delete(m, k) }
func getNumber(m numbers, k uint64) (v uint64, ok bool) { v, ok = m[k]; return }

func getNumbers(m numbers, keys, values *[batch]uint64, found *[batch]bool) {
	for i, k := range keys {
		values[i], found[i] = m[k]
	}
}

type texts = map[string]pair

func newTexts(int) texts                          { return texts{} }
func putText(m texts, k string, v pair)           { m[strings.Clone(k)] = v }
func getText(m texts, k string) (v pair, ok bool) { v, ok = m[k]; return }
