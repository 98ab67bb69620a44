package main

import (
	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/pool"
)

var poolContender = contender{
	name:  "pool",
	title: "pool",
	frees: "node by node",
	open: func() (list, error) {
		h := freehold.NewHeap(nil)
		p := pool.New[offNode](h, nil)
		return &offList{
			get:   p.Get,
			put:   p.Put,
			bytes: func() int64 { return int64(p.Stats().LiveBytes) },
			closing: func() error {
				live := p.Live()
				p.Close()
				if err := allFreed("the pool", live); err != nil {
					return err
				}
				return closeHeap(h)
			},
		}, nil
	},
}
