package vector

import (
	"slices"
	"testing"

	"github.com/freehold-go/freehold/alloctest"
)

// Each invariant is checked: what breaks it is found.
func TestCheckFindsWhatIsBroken(t *testing.T) {
	for name, damage := range map[string]func(c *Chunked[int]){
		"length beyond the capacity": func(c *Chunked[int]) { c.n = c.Cap() + 1 },
		"negative length":            func(c *Chunked[int]) { c.n = -1 },
		"length beyond the tail":     func(c *Chunked[int]) { c.n++ },
		"tail behind the length":     func(c *Chunked[int]) { c.tail = c.tail[:len(c.tail)-1] },
		"tail without a block":       func(c *Chunked[int]) { c.n = c.Cap() },
		"short block":                func(c *Chunked[int]) { c.blocks[1] = c.blocks[1][1:] },
	} {
		t.Run(name, func(t *testing.T) {
			c := NewChunked[int](alloctest.New(t), nil)
			defer c.Close()
			for i := range 200 {
				if _, err := c.Append(i); err != nil {
					t.Fatal(err)
				}
			}
			n, tail, blocks := c.n, c.tail, slices.Clone(c.blocks)
			if fault := c.check(); fault != "" {
				t.Error(fault)
			}
			damage(c)
			if c.check() == "" {
				t.Error("the damage is not found")
			}
			c.n, c.tail, c.blocks = n, tail, blocks
		})
	}
}
