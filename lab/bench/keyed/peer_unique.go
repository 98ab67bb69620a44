// Peer: package unique, with its handles kept, as it forgets what has none.

//go:build peer_unique

package main

import "unique"

type interned = *[]unique.Handle[string]

func newInterned() interned { return new([]unique.Handle[string]) }

func keepText(s interned, text string) { *s = append(*s, unique.Make(text)) }
