package guides

import (
	"fmt"

	"github.com/dgraph-io/ristretto/v2/z"
	google "github.com/google/btree"
	tidwall "github.com/tidwall/btree"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/btree"
)

func Example_googleBefore() {
	type price struct {
		day  int
		euro float64
	}
	prices := google.NewG(32, func(a, b price) bool { return a.day < b.day })

	for day, euro := range []float64{41.5, 42, 40.25, 43} {
		prices.ReplaceOrInsert(price{day, euro})
	}
	p, found := prices.Get(price{day: 2})
	fmt.Println(p.euro, found)
	prices.AscendRange(price{day: 1}, price{day: 3}, func(p price) bool {
		fmt.Println(p.day, p.euro)
		return true
	})
	last, _ := prices.Max()
	prices.Delete(price{day: 0})
	fmt.Println(last.euro, prices.Len())
	// Output:
	// 40.25 true
	// 1 42
	// 2 40.25
	// 43 3
}

func Example_googleAfter() {
	prices := btree.New[int, float64](freehold.Default(), nil)
	defer prices.Close()

	for day, euro := range []float64{41.5, 42, 40.25, 43} {
		if err := prices.Put(day, euro); err != nil {
			panic(err)
		}
	}
	euro, found := prices.Get(2)
	fmt.Println(euro, found)
	for day, euro := range prices.Range(1, 3) {
		fmt.Println(day, euro)
	}
	_, last, _ := prices.Max()
	prices.Delete(0)
	fmt.Println(last, prices.Len())
	// Output:
	// 40.25 true
	// 1 42
	// 2 40.25
	// 43 3
}

func Example_tidwallBefore() {
	var sizes tidwall.Map[string, int]

	for _, word := range []string{"tree", "leaf", "node", "leaf"} {
		n, _ := sizes.Get(word)
		sizes.Set(word, n+1)
	}
	sizes.Ascend("m", func(word string, n int) bool {
		fmt.Println(word, n)
		return true
	})
	sizes.Reverse(func(word string, n int) bool {
		fmt.Println("the last:", word)
		return false
	})
	word, n, _ := sizes.PopMin()
	fmt.Println(word, n, sizes.Len())
	// Output:
	// node 1
	// tree 1
	// the last: tree
	// leaf 2 2
}

func Example_tidwallAfter() {
	sizes := btree.New[string, int](freehold.Default(), nil)
	defer sizes.Close()

	for _, word := range []string{"tree", "leaf", "node", "leaf"} {
		if err := sizes.Update(word, func(n *int, found bool) { *n++ }); err != nil {
			panic(err)
		}
	}
	for word, n := range sizes.From("m") {
		fmt.Println(word, n)
	}
	for word := range sizes.Backward() {
		fmt.Println("the last:", word)
		break
	}
	word, n, _ := sizes.Min()
	fmt.Print(word, " ", n) // before Delete: word is the map's memory
	sizes.Delete(word)
	fmt.Println("", sizes.Len())
	// Output:
	// node 1
	// tree 1
	// the last: tree
	// leaf 2 2
}

func Example_treeBefore() {
	versions := z.NewTree("versions") // of uint64 other than 0, and than the largest
	defer versions.Close()

	for key := uint64(1); key <= 5; key++ {
		versions.Set(key, 100+key)
	}
	versions.DeleteBelow(103)
	fmt.Println(versions.Get(2), versions.Get(4)) // 0 is none
	versions.IterateKV(func(key, version uint64) uint64 {
		fmt.Println(key, version)
		return 0 // no other value
	})
	// Output:
	// 0 104
	// 3 103
	// 4 104
	// 5 105
}

func Example_treeAfter() {
	versions := btree.New[uint64, uint64](freehold.Default(), nil)
	defer versions.Close()

	for key := uint64(1); key <= 5; key++ {
		if err := versions.Put(key, 100+key); err != nil {
			panic(err)
		}
	}
	versions.DeleteFunc(func(_ uint64, version *uint64) bool { return *version < 103 })
	second, _ := versions.Get(2)
	fourth, _ := versions.Get(4)
	fmt.Println(second, fourth)
	for key, version := range versions.All() {
		fmt.Println(key, version)
	}
	// Output:
	// 0 104
	// 3 103
	// 4 104
	// 5 105
}
