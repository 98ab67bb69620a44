// Intern: strings of 16 B, of which one copy is kept.

//go:build peer_internmap || peer_unique || peer_intern

package main

import "runtime"

func init() {
	loads["intern-new"] = func(p *params) (r result) {
		internAll(newInterned(), newStringKeys(p.entries/100, inOrder))
		keys, s := newStringKeys(p.entries, inOrder), newInterned()
		r = timed(p.entries, func() { internAll(s, keys) })
		r.sum = uint64(p.entries)
		runtime.KeepAlive(s)
		return r
	}
	loads["intern-known"] = func(p *params) (r result) {
		s := newInterned()
		internAll(s, newStringKeys(p.entries, inOrder))
		keys := hits(p.entries)
		internAll(s, keys[:keys.len()/4*stringBytes])
		r = timed(keys.len(), func() { internAll(s, keys) })
		r.sum = uint64(p.entries)
		runtime.KeepAlive(s)
		return r
	}
	loads["intern-held"] = func(p *params) result {
		keys := newStringKeys(p.entries, inOrder)
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
