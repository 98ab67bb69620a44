// Example keeps a thousand entries in a freecache that the replace line of go.mod puts on freehold.
package main

import (
	"fmt"

	"github.com/coocood/freecache"
	"github.com/freehold-go/freehold/cache" // only to print the figures of all caches
)

func main() {
	c := freecache.NewCache(64 << 20)
	defer c.Clear()
	for i := range 1000 {
		c.Set(fmt.Append(nil, "key ", i), fmt.Append(nil, "value of key ", i), 60)
	}
	value, _ := c.Get([]byte("key 7"))
	fmt.Printf("%s\n", value)
	for _, s := range cache.AllStats() {
		fmt.Printf("%s: %d entries\n", s.Name, s.Len)
	}
}
