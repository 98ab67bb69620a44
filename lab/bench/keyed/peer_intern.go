// Peer: freehold's intern.Strings.

//go:build peer_intern

package main

import (
	"github.com/freehold-go/freehold/intern"
)

type interned = *intern.Strings

func newInterned() interned { return intern.New(newHeap(), nil) }

func keepText(s interned, text string) intern.ID {
	id, err := s.Intern(text)
	must(err)
	return id
}
