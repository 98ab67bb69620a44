// The tests of ristretto's package z, on freehold.

package z_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/freehold-go/freehold/internal/test/suite"
)

// What stays here of package z's other files.
const internals = `package z

import "os"

var (
	pageSize = os.Getpagesize()
	maxKeys  = pageSize/16 - 1
)

func assert(bool) {}
`

func TestRistrettosTests(t *testing.T) {
	m := suite.Copy(t, "github.com/dgraph-io/ristretto/v2")
	for _, file := range []string{"allocator.go", "btree.go", "buffer.go", "calloc.go", "calloc_jemalloc.go", "calloc_nojemalloc.go"} {
		m.Write(t, "z/"+file, "package z")
	}
	here := suite.Module{Dir: "."}
	for _, file := range []string{"allocator.go", "buffer.go", "calloc.go", "pool.go", "slices.go", "tree.go", "treefile.go"} {
		m.Write(t, "z/"+file, here.Read(t, file))
	}
	m.Write(t, "z/internals.go", internals)

	// What looks into ristretto's own structures: the sizes of its chunks and the address at which
	// one ends, its logarithm, its nodes, how many of them there are and how full.
	m.Drop(t, "z/allocator_test.go", "TestAllocateSize", "TestPowTwo", "TestAllocateAligned")
	m.Drop(t, "z/btree_test.go", "TestTreeReset", "TestTreeCycle", "TestOccupancyRatio", "TestNode", "TestNodeBasic", "TestNode_MoveRight",
		"TestNodeCompact", "BenchmarkSearch", "BenchmarkCustomSearch")
	for _, line := range []string{"\t\"sort\"\n", "\t\"github.com/dgraph-io/ristretto/v2/z/simd\"\n"} {
		m.Edit(t, "z/btree_test.go", line, "")
	}
	tree := regexp.MustCompile(`(?m)^.*(freePage|nextPage)\)$`).ReplaceAllString(m.Read(t, "z/btree_test.go"), "")
	tree = regexp.MustCompile(`, bt(.)Stats, bt(.)Stats\)`).ReplaceAllString(tree, ", bt${1}Stats.NumLeafKeys, bt${2}Stats.NumLeafKeys)")
	m.Write(t, "z/btree_test.go", tree)
	m.Write(t, "z/buffer_test.go", strings.ReplaceAll(m.Read(t, "z/buffer_test.go"), "buf.bufType", `"any"`))
	m.Test(t, 16, "-run", "Alloc|Buffer|Calloc|Tree", "-skip", "TestAllocateReset", "./z")
	m.Test(t, 1, "-run", "TestAllocateReset", "-cpu", "1", "./z") // each processor has a chunk
}
