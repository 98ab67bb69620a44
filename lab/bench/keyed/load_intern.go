// Intern: strings of 16 B, of which one copy is kept.

//go:build peer_internmap || peer_unique || peer_intern

package main

import "runtime"

func init() {
	loads["intern-new"] = func(p *params) (r result) {
		internAll(newInterned(), newStringKeys(p.Entries/100, inOrder))
		keys, s := newStringKeys(p.Entries, inOrder), newInterned()
		r = timed(p.Entries, func() { internAll(s, keys) })
		r.Sum = uint64(p.Entries)
		runtime.KeepAlive(s)
		return r
	}
	loads["intern-known"] = func(p *params) (r result) {
		s := newInterned()
		internAll(s, newStringKeys(p.Entries, inOrder))
		keys := hits(p.Entries)
		internAll(s, keys[:keys.len()/4*stringBytes])
		r = timed(keys.len(), func() { internAll(s, keys) })
		r.Sum = uint64(p.Entries)
		runtime.KeepAlive(s)
		return r
	}
	loads["intern-held"] = func(p *params) result {
		keys := newStringKeys(p.Entries, inOrder)
		internAll(newInterned(), keys[:100*stringBytes])
		return filled(p, func() any {
			s := newInterned()
			internAll(s, keys)
			return s
		})
	}
}

func internAll(s interned, keys stringKeys) {
	for i := range keys.len() {
		keepText(s, keys.at(i))
	}
}
