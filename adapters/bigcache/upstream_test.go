// The tests of bigcache, and a program that replaces it.

package bigcache

import (
	"testing"

	"github.com/freehold-go/freehold/internal/test/suite"
)

func TestBigcachesTests(t *testing.T) {
	m := suite.Copy(t, "github.com/allegro/bigcache/v3")
	m.ReplaceCode(t, "cache.go", "shard.go", "config.go", "stats.go", "iterator.go")
	m.Write(t, "encoding_test.go", "package bigcache\n")                              // how bigcache's entries are encoded
	m.Drop(t, "bigcache_test.go", "TestCacheCapacity")                                // how its queue grows
	m.Drop(t, "bigcache_test.go", "TestOldestEntryDeletionWhenMaxCacheSizeIsReached") // an entry has 0.8 of the cache
	m.Drop(t, "iterator_test.go", "TestEntriesIteratorWithConcurrentUpdate")          // it evicts from bigcache's queue
	m.Test(t, 64, "-short", ".", "./server")
}

// The program in the folder example gets the replace line of the package's documentation.
func TestReplace(t *testing.T) {
	if out := suite.RunExample(t); out != "value of key 7\nbigcache: 1000 entries" {
		t.Error(out)
	}
}
