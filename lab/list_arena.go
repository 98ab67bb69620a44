package main

import (
	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/arena"
)

var arenaContender = contender{
	name:  "arena",
	title: "arena",
	frees: "the arena is closed, all at once",
	open: func() (list, error) {
		h := freehold.NewHeap(nil)
		a := arena.New(h, nil)
		return &offList{
			get:     func() (*offNode, error) { return freehold.New[offNode](a) },
			putAll:  a.Close,
			bytes:   func() int64 { return int64(h.Stats().LiveBytes) },
			closing: func() error { return closeHeap(h) },
		}, nil
	},
}
