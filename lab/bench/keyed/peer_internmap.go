// Peer: a map[string]string.

//go:build peer_internmap

package main

import "strings"

type interned = map[string]string

func newInterned() interned { return interned{} }

func keepText(m interned, s string) string {
	if known, ok := m[s]; ok {
		return known
	}
	s = strings.Clone(s)
	m[s] = s
	return s
}
