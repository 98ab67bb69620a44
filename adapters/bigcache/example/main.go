// Example keeps a thousand entries in a bigcache that the replace line of go.mod puts on freehold.
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/allegro/bigcache/v3"
	"github.com/freehold-go/freehold/cache" // only to print the figures of all caches
)

func main() {
	c, err := bigcache.New(context.Background(), bigcache.DefaultConfig(10*time.Minute))
	if err != nil {
		panic(err)
	}
	defer c.Close()
	for i := range 1000 {
		c.Set(fmt.Sprint("key ", i), fmt.Append(nil, "value of key ", i))
	}
	value, _ := c.Get("key 7")
	fmt.Printf("%s\n", value)
	for _, s := range cache.AllStats() {
		fmt.Printf("%s: %d entries\n", s.Name, s.Len)
	}
}
