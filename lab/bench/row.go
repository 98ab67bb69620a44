// Row: who is measured. Each row is a program that runs the same loops on its
// own allocator.

package bench

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A row is one line of every table.
type row struct {
	name string // what --rows names
	what string

	// A Go row is worker/ built with tags, none for freehold's Heap, or keyed/ for a container; a C row is
	// native/native.c, run with a library preloaded; a row that sorts is sorter/ with
	// a peer's name.
	tags    string
	sorter  string
	keyed   bool
	cgo     bool
	native  bool
	preload string   // the library's file name, as ldconfig lists it
	expect  string   // how the version that the program prints begins
	needs   []string // files without which it cannot be built

	lone     bool // not safe for several goroutines
	together bool // only for several goroutines
	loop     bool // no allocator: what the loops themselves cost
	collects bool // the Go collector frees its blocks
	extra    bool // left out of heavy loads, where it only repeats another row

	only []string // the only loads it runs; nil means all that are not special
	also []string // the special loads it runs too

	// What build found.
	path    string
	args    []string
	env     []string
	version string
	skip    string // why there is no program
}

func rows() []*row {
	list := []string{"list"}
	held := []string{"onebyte", "onebyte-memory", "burst/2", "burst/8", "burst/64"}
	fixed := []string{"sort/24"}
	buffers := append([]string{"sort/framed", "append/16", "buffer/grow"}, fixed...)
	var lines []string
	for _, kind := range lineKinds {
		lines = append(lines, "lines/"+kind.name)
	}
	numbers := []string{"numbers/insert", "numbers/hit", "numbers/miss", "numbers/many", "numbers/churn", "numbers/worst", "numbers/held"}
	texts := []string{"strings/insert", "strings/hit", "strings/miss", "strings/held", "strings/collect", "strings/collect-full"}
	shared := []string{"shared/small", "shared/large"}
	ordered := []string{"ordered/insert", "ordered/get", "ordered/scan", "ordered/churn", "ordered/held"}
	interned := []string{"intern/new", "intern/known", "intern/held"}
	lru := []string{"lru/16-1024", "lru/16-65536", "lru8/16-1024", "lru8/16-65536"}
	return []*row{
		{name: "freehold", what: "freehold's Heap, called directly", also: append(held, list...)},
		{name: "freehold-interface", what: "freehold's Heap behind the Allocator interface", tags: "peer peer_interface", extra: true},
		{name: "freehold-pointer", what: "freehold's Malloc and FreePointer", tags: "peer peer_pointer", extra: true},
		{name: "freehold-cache", what: "freehold's Heap through a Cache, for one goroutine", tags: "peer peer_cache", only: []string{"pair/64"}},
		{name: "freehold-pool", what: "freehold's Pool of values of 64 B", tags: "peer peer_pool", only: []string{"pair/64", "pair2/64", "guard", "guard2"}},
		{name: "freehold-pool-cache", what: "freehold's Pool through a Cache, for one goroutine", tags: "peer peer_pool_cache", only: []string{"pair/64"}},
		{name: "freehold-arena", what: "freehold's Arena, for one goroutine", tags: "peer peer_arena", only: []string{"bump/64", "bump/64-new", "reset", "list"}},
		{name: "freehold-shared", what: "freehold's arena.Shared", tags: "peer peer_shared", only: []string{"bump/64", "bump/64-new", "bump2/64", "reset", "guard", "guard2"}},
		{name: "freehold-maxbytes", what: "freehold's Heap with MaxBytes", tags: "peer peer_maxbytes", only: lru},
		{name: "freehold-limit", what: "freehold's Limit around a Heap", tags: "peer peer_limit", only: lru},
		{name: "go", what: "the Go heap: new for pairs, make elsewhere; its collections included", tags: "peer peer_goheap", collects: true, also: append(held, list...)},
		{name: "modernc", what: "modernc.org/memory, for one goroutine", tags: "peer peer_modernc", lone: true},
		{name: "modernc-mutex", what: "modernc.org/memory under a mutex", tags: "peer peer_modernc_mutex", together: true},
		{name: "ristretto", what: "ristretto's z as it is by default: the Go heap, always zeroed", tags: "peer peer_ristretto", collects: true, extra: true},
		{name: "ristretto-jemalloc", what: "ristretto's z on jemalloc (-tags jemalloc)", tags: "peer peer_ristretto jemalloc", cgo: true, expect: "ristretto z on jemalloc", needs: []string{"/usr/local/lib/libjemalloc.a"}},
		{name: "ristretto-allocator", what: "ristretto's z.Allocator, an arena, on the Go heap as by default", tags: "peer peer_ristretto_allocator", only: []string{"bump/64", "bump/64-new", "bump2/64", "reset", "list"}},
		{name: "cgo-libc", what: "C's malloc through cgo", tags: "peer peer_cgo", cgo: true, expect: "libc", also: held},
		{name: "cgo-jemalloc", what: "jemalloc through cgo", tags: "peer peer_cgo_jemalloc", cgo: true, expect: "jemalloc", extra: true, also: held},
		{name: "c-libc", what: "C's malloc in a C program", native: true, expect: "libc", also: list},
		{name: "c-jemalloc", what: "jemalloc in a C program", native: true, preload: "libjemalloc.so.2", expect: "jemalloc", also: list},
		{name: "c-mimalloc", what: "mimalloc in a C program", native: true, preload: "libmimalloc.so.2", expect: "mimalloc", also: list},
		{name: "c-tcmalloc", what: "tcmalloc in a C program", native: true, preload: "libtcmalloc_minimal.so.4", expect: "tcmalloc", also: list},
		{name: "loop-go", what: "no allocator: what the Go loops cost", tags: "peer peer_loop", loop: true, also: []string{"bump/64", "bump/64-new"}},
		{name: "loop-c", what: "no allocator: what the C loops cost", native: true, loop: true},

		{name: "freehold-records", what: "freehold's buffer.Records", sorter: "records", only: append([]string{"sort/24-bytes", "sort/24-cmp", "append/16-fixed", "buffer/grow-full"}, buffers...)},
		{name: "ristretto-buffer", what: "ristretto's z.Buffer, on the Go heap as by default; not stable", sorter: "z-buffer", only: buffers},
		{name: "go-structs", what: "slices.SortFunc on structs; not stable", sorter: "structs", only: fixed},
		{name: "go-pointers", what: "slices.SortFunc on pointers; not stable", sorter: "pointers", only: fixed},
		{name: "go-stable", what: "slices.SortStableFunc on structs", sorter: "stable", only: fixed},
		{name: "freehold-sort", what: "the command freehold sort", sorter: "command", only: lines},
		{name: "gnu-sort", what: "GNU sort in the C locale", sorter: "gnu", only: lines},
		{name: "freehold-extsort", what: "freehold's package extsort", sorter: "extsort", only: []string{"lines/mixed"}},
		{name: "lanrat-extsort", what: "github.com/lanrat/extsort", sorter: "lanrat", only: []string{"lines/mixed"}},

		{name: "freehold-map", what: "freehold's hashmap.Map", keyed: true, tags: "peer peer_map", only: append(numbers, texts...)},
		{name: "freehold-map-huge", what: "freehold's hashmap.Map on a heap with HugePages", keyed: true, tags: "peer peer_map huge", only: append(numbers, texts...)},
		{name: "go-map", what: "Go's map; it owns copies of its strings", keyed: true, tags: "peer peer_gomap", only: append(numbers, texts...)},
		{name: "cockroach-swiss", what: "github.com/cockroachdb/swiss, as the Go map", keyed: true, tags: "peer peer_swiss", only: append(numbers, texts...)},
		{name: "fastcache", what: "github.com/VictoriaMetrics/fastcache, with room for all entries", keyed: true, tags: "peer peer_fastcache", only: texts},
		{name: "freehold-sharded", what: "freehold's hashmap.Shared", keyed: true, tags: "peer peer_sharded", only: shared},
		{name: "xsync-map", what: "github.com/puzpuzpuz/xsync's Map", keyed: true, tags: "peer peer_xsync", only: shared},
		{name: "sync-map", what: "sync.Map", keyed: true, tags: "peer peer_syncmap", only: shared},
		{name: "go-map-rwmutex", what: "256 Go maps, each under a sync.RWMutex", keyed: true, tags: "peer peer_rwmutex", only: shared},
		{name: "freehold-btree", what: "freehold's btree.Map", keyed: true, tags: "peer peer_btree", only: ordered},
		{name: "google-btree", what: "github.com/google/btree, of degree 32", keyed: true, tags: "peer peer_google", only: ordered},
		{name: "tidwall-btree", what: "github.com/tidwall/btree's Map", keyed: true, tags: "peer peer_tidwall", only: ordered},
		{name: "freehold-intern", what: "freehold's intern.Strings", keyed: true, tags: "peer peer_intern", only: interned},
		{name: "freehold-intern-huge", what: "freehold's intern.Strings on a heap with HugePages", keyed: true, tags: "peer peer_intern huge", only: interned},
		{name: "go-map-intern", what: "a map[string]string", keyed: true, tags: "peer peer_internmap", only: interned},
		{name: "unique", what: "package unique, its handles kept", keyed: true, tags: "peer peer_unique", only: interned},
	}
}

// runs reports whether r can run l, and would say something by it.
func (r *row) runs(l load) bool {
	switch {
	case r.skip != "":
		return false
	case r.only != nil:
		return slices.Contains(r.only, cmp.Or(l.of, l.key))
	case l.special:
		return slices.Contains(r.also, l.key)
	case l.unit == mallocs:
		return strings.HasPrefix(r.name, "freehold")
	case l.key == "grow" && strings.HasPrefix(r.name, "ristretto"):
		return false // has no realloc
	case l.heavy:
		return !r.extra && !r.loop && !r.together
	case l.shared:
		return !r.lone
	}
	return !r.together
}

// selectRows keeps the rows whose names begin with one of the given ones.
func selectRows(all []*row, names []string) ([]*row, error) {
	if len(names) == 0 {
		return all, nil
	}
	for _, name := range names {
		if !slices.ContainsFunc(all, func(r *row) bool { return strings.HasPrefix(r.name, name) }) {
			return nil, fmt.Errorf("no row begins with %q; --list names them", name)
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(r *row) bool {
		return !slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(r.name, name) })
	}), nil
}
