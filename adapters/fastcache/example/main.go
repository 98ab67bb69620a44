// Example keeps a thousand entries in a fastcache that the replace line of go.mod puts on freehold.
package main

import (
	"fmt"

	"github.com/VictoriaMetrics/fastcache"
	"github.com/freehold-go/freehold/cache" // only to print the figures of all caches
)

func main() {
	c := fastcache.New(64 << 20)
	defer c.Reset()
	for i := range 1000 {
		c.Set(fmt.Append(nil, "key ", i), fmt.Append(nil, "value of key ", i))
	}
	fmt.Printf("%s\n", c.Get(nil, []byte("key 7")))
	for _, s := range cache.AllStats() {
		fmt.Printf("%s: %d entries\n", s.Name, s.Len)
	}
}
