// Package copies copies what must not be copied: go vet must complain of each
// assignment.
package copies

import "github.com/freehold-go/freehold/pool"

func copies(b *pool.Blocks, c *pool.BlocksCache, p *pool.Pool[int], q *pool.Cache[int]) {
	blocks := *b
	blocksCache := *c
	values := *p
	cache := *q
	_, _, _, _ = &blocks, &blocksCache, &values, &cache
}
