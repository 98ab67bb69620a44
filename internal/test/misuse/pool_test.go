package misuse

import (
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/pool"
)

type value [8]int64 // 64 bytes

// inPool runs a program in a pool of values, which it closes afterwards.
func inPool(f func(w *world, p *pool.Pool[value])) func(w *world) { return inPoolOf(f, nil) }

// inSmallPool is inPool with a pool of one value.
func inSmallPool(f func(w *world, p *pool.Pool[value])) func(w *world) {
	return inPoolOf(f, &pool.Options{MaxBlocks: 1})
}

func inPoolOf(f func(w *world, p *pool.Pool[value]), o *pool.Options) func(w *world) {
	return func(w *world) {
		p := pool.New[value](w.a, o)
		f(w, p)
		p.Close()
	}
}

// inBlocks runs a program in a pool of blocks, which it closes afterwards.
func inBlocks(f func(w *world, p *pool.Blocks)) func(w *world) {
	return func(w *world) {
		p := pool.NewBlocks(w.a, small, 8, nil)
		f(w, p)
		p.Close()
	}
}

func get(p *pool.Pool[value]) *value { return freehold.Must(p.Get()) }

var poolPrograms = []program{
	{"Put twice", always(panics("double free")),
		inPool(func(w *world, p *pool.Pool[value]) { v := get(p); p.Put(v); p.Put(v) }),
		inPool(func(w *world, p *pool.Pool[value]) { p.Put(get(p)); p.Put(nil) })},
	{"Put twice, with Trim between", always(panics("the memory is not of this pool")),
		inPool(func(w *world, p *pool.Pool[value]) { v := get(p); p.Put(v); p.Trim(); p.Put(v) }),
		inPool(func(w *world, p *pool.Pool[value]) { v := get(p); p.Trim(); p.Put(v); p.Trim() })},
	{"Put of the middle of a value", always(panics("points 8 bytes into a block")),
		inPool(func(w *world, p *pool.Pool[value]) { p.Put((*value)(unsafe.Add(unsafe.Pointer(get(p)), 8))) }),
		inPool(func(w *world, p *pool.Pool[value]) { p.Put(get(p)) })},
	{"Put of a Go variable", always(panics("the memory is not of this pool")),
		inPool(func(w *world, p *pool.Pool[value]) { p.Put(new(value)) }),
		inPool(func(w *world, p *pool.Pool[value]) { v := get(p); *v = value{}; p.Put(v) })},
	{"Put into another pool", always(panics("the memory is not of this pool")),
		inPool(func(w *world, p *pool.Pool[value]) { get(p); p.Put(get(pool.New[value](w.a, nil))) }),
		inPool(func(w *world, p *pool.Pool[value]) {
			other := pool.New[value](w.a, nil)
			other.Put(get(other))
			other.Close()
		})},
	{"Put of a block of the parent", always(panics("the memory is not of this pool")),
		inPool(func(w *world, p *pool.Pool[value]) { p.Put(freehold.Must(freehold.New[value](w.a))) }),
		inPool(func(w *world, p *pool.Pool[value]) { freehold.Free(w.a, freehold.Must(freehold.New[value](w.a))) })},
	{"free of a value to the pool's parent", always(panics("Heap.Free: 0x")),
		inPool(func(w *world, p *pool.Pool[value]) { get(p); freehold.Free(w.a, get(p)) }),
		inPool(func(w *world, p *pool.Pool[value]) { p.Put(get(p)) })},
	{"Put by two goroutines at once", caught{plain: isHarmless, race: racesOrPanics},
		inPool(func(w *world, p *pool.Pool[value]) {
			v := get(p)
			atOnce(func() { p.Put(v) }, func() { p.Put(v) })
			live := map[*value]bool{} // not detected: then the value must have one owner
			for range 1000 {
				v := get(p)
				if live[v] {
					panic("a value has two owners")
				}
				live[v] = true
			}
		}),
		inPool(func(w *world, p *pool.Pool[value]) {
			v, u := get(p), get(p)
			atOnce(func() { p.Put(v) }, func() { p.Put(u) })
		})},
	{"Put of a value whose memory has its next owner", caught{},
		inSmallPool(func(w *world, p *pool.Pool[value]) { v := get(p); p.Put(v); get(p); p.Put(v) }),
		inSmallPool(func(w *world, p *pool.Pool[value]) { p.Put(get(p)); p.Put(get(p)) })},
	{"PutHandle of a value whose memory has its next owner", always(panics("the value is gone")),
		inSmallPool(func(w *world, p *pool.Pool[value]) { v := get(p); h := p.Handle(v); p.Put(v); get(p); p.PutHandle(h) }),
		inPool(func(w *world, p *pool.Pool[value]) { p.PutHandle(p.Handle(get(p))); p.PutHandle(p.Handle(get(p))) })},
	{"Lookup of a value whose memory has its next owner", always(answersNo),
		inSmallPool(func(w *world, p *pool.Pool[value]) {
			v := get(p)
			h := p.Handle(v)
			p.Put(v)
			get(p)
			_, ok := p.Lookup(h)
			w.no = !ok
		}),
		inPool(func(w *world, p *pool.Pool[value]) { _, ok := p.Lookup(p.Handle(get(p))); w.no = !ok })},
	{"Lookup after Reset of the pool", always(answersNo),
		inPool(func(w *world, p *pool.Pool[value]) {
			h := p.Handle(get(p))
			p.Reset()
			get(p)
			_, ok := p.Lookup(h)
			w.no = !ok
		}),
		inPool(func(w *world, p *pool.Pool[value]) { p.Reset(); _, ok := p.Lookup(p.Handle(get(p))); w.no = !ok })},
	{"Lookup in another pool", always(answersNo),
		inPool(func(w *world, p *pool.Pool[value]) {
			get(p)
			other := pool.New[value](w.a, nil)
			_, ok := p.Lookup(other.Handle(get(other)))
			w.no = !ok
		}),
		inPool(func(w *world, p *pool.Pool[value]) { _, ok := p.Lookup(p.Handle(get(p))); w.no = !ok })},
	{"Handle of a value that was put", always(panics("double free")),
		inPool(func(w *world, p *pool.Pool[value]) { v := get(p); p.Put(v); p.Handle(v) }),
		inPool(func(w *world, p *pool.Pool[value]) { v := get(p); p.Handle(v); p.Put(v) })},
	{"Retire twice", always(panics("the block was retired before")),
		inPool(func(w *world, p *pool.Pool[value]) { v := get(p); p.Retire(v); p.Retire(v) }),
		inPool(func(w *world, p *pool.Pool[value]) { p.Retire(get(p)); p.Retire(get(p)) })},
	{"Put after Retire", always(panics("the block was retired before")),
		inPool(func(w *world, p *pool.Pool[value]) { v := get(p); p.Retire(v); p.Put(v) }),
		inPool(func(w *world, p *pool.Pool[value]) { v, u := get(p), get(p); p.Retire(v); p.Put(u) })},
	{"Retire after Put", always(panics("double free")),
		inPool(func(w *world, p *pool.Pool[value]) { v := get(p); p.Put(v); p.Retire(v) }),
		inPool(func(w *world, p *pool.Pool[value]) { p.Retire(get(p)) })},
	{"Leave of a pool's only guard twice", always(panics("the guard has left already")),
		inPool(func(w *world, p *pool.Pool[value]) { g := p.Enter(); g.Leave(); g.Leave() }),
		inPool(func(w *world, p *pool.Pool[value]) { g := p.Enter(); p.Retire(get(p)); g.Leave() })},
	{"Get after Close of a pool", always(panics("is closed")),
		inPool(func(w *world, p *pool.Pool[value]) { p.Close(); p.Get() }),
		inPool(func(w *world, p *pool.Pool[value]) { get(p); p.Close(); p.Close() })},
	{"Put after Close of a pool", always(panics("is closed")),
		inPool(func(w *world, p *pool.Pool[value]) { v := get(p); p.Close(); p.Put(v) }),
		inPool(func(w *world, p *pool.Pool[value]) { v := get(p); p.Put(v); p.Close() })},
	{"Close of a pool after Close of its heap", always(panics("is closed")),
		inPool(func(w *world, p *pool.Pool[value]) { get(p); w.heap.Close() }),
		inPool(func(w *world, p *pool.Pool[value]) { get(p); p.Close(); w.heap.Close() })},
	{"Close of Blocks after Close of their heap", always(panics("is closed")),
		inBlocks(func(w *world, p *pool.Blocks) { take(p); w.heap.Close() }),
		inBlocks(func(w *world, p *pool.Blocks) { take(p); p.Close(); w.heap.Close() })},
	{"use of a pool's Cache after its Close", always(panics("the cache of the pool of misuse.value is closed")),
		inPool(func(w *world, p *pool.Pool[value]) { c := p.NewCache(); c.Close(); c.Get() }),
		inPool(func(w *world, p *pool.Pool[value]) {
			c := p.NewCache()
			c.Put(freehold.Must(c.Get()))
			c.Close()
			c.Close()
		})},
	{"Put into a Cache, and then into its pool", always(panics("double free")),
		inPool(func(w *world, p *pool.Pool[value]) { c := p.NewCache(); v := get(p); c.Put(v); p.Put(v) }),
		inPool(func(w *world, p *pool.Pool[value]) {
			c := p.NewCache()
			defer c.Close()
			c.Put(get(p))
			p.Put(get(p))
		})},
	{"Put into a Cache twice", always(panics("double free")),
		inPool(func(w *world, p *pool.Pool[value]) {
			c := p.NewCache()
			v := freehold.Must(c.Get())
			c.Put(v)
			c.Put(v)
		}),
		inPool(func(w *world, p *pool.Pool[value]) {
			c := p.NewCache()
			defer c.Close()
			c.Put(freehold.Must(c.Get()))
			c.Put(nil)
		})},
	{"Put into a pool, and then into the Cache that it came from", always(panics("double free")),
		inPool(func(w *world, p *pool.Pool[value]) {
			c := p.NewCache()
			v := freehold.Must(c.Get())
			p.Put(v)
			c.Put(v)
		}),
		inPool(func(w *world, p *pool.Pool[value]) {
			c := p.NewCache()
			defer c.Close()
			p.Put(freehold.Must(c.Get()))
			c.Put(get(p))
		})},
	{"Put into one Cache, and then into another", always(panics("double free")),
		inPool(func(w *world, p *pool.Pool[value]) {
			c, d := p.NewCache(), p.NewCache()
			v := freehold.Must(c.Get())
			d.Put(v)
			c.Put(v)
		}),
		inPool(func(w *world, p *pool.Pool[value]) {
			c, d := p.NewCache(), p.NewCache()
			defer c.Close()
			defer d.Close()
			d.Put(freehold.Must(c.Get()))
			c.Put(freehold.Must(d.Get()))
		})},
	{"Retire of a value of a Cache, and then Put into that", always(panics("the block was retired before")),
		inPool(func(w *world, p *pool.Pool[value]) {
			c := p.NewCache()
			v := freehold.Must(c.Get())
			p.Retire(v)
			c.Put(v)
		}),
		inPool(func(w *world, p *pool.Pool[value]) {
			c := p.NewCache()
			defer c.Close()
			p.Retire(freehold.Must(c.Get()))
		})},
	{"Put into the Cache of another pool", always(panics("the memory is not of this pool")),
		inPool(func(w *world, p *pool.Pool[value]) { c := pool.New[value](w.a, nil).NewCache(); c.Get(); c.Put(get(p)) }),
		inPool(func(w *world, p *pool.Pool[value]) {
			c := p.NewCache()
			defer c.Close()
			c.Get()
			c.Put(get(p))
		})},
	{"Put into a pool's Cache after its Close", always(panics("the cache of the pool of misuse.value is closed")),
		inPool(func(w *world, p *pool.Pool[value]) {
			c := p.NewCache()
			v := freehold.Must(c.Get())
			c.Close()
			c.Put(v)
		}),
		inPool(func(w *world, p *pool.Pool[value]) {
			c := p.NewCache()
			v := freehold.Must(c.Get())
			c.Close()
			p.Put(v)
		})},
	{"Get from a Cache after Close of its pool", always(panics("is closed")),
		inPool(func(w *world, p *pool.Pool[value]) {
			c := p.NewCache()
			c.Put(freehold.Must(c.Get()))
			p.Close()
			c.Get()
		}),
		inPool(func(w *world, p *pool.Pool[value]) {
			c := p.NewCache()
			c.Put(freehold.Must(c.Get()))
			p.Close()
			c.Close()
		})},
	{"Put into a Cache after Close of its pool", always(panics("is closed")),
		inPool(func(w *world, p *pool.Pool[value]) {
			c := p.NewCache()
			v := freehold.Must(c.Get())
			p.Close()
			c.Put(v)
		}),
		inPool(func(w *world, p *pool.Pool[value]) { c := p.NewCache(); c.Put(freehold.Must(c.Get())); p.Close() })},
	{"Put into a Cache of a value from before Reset of its pool", always(panics("double free")),
		inPool(func(w *world, p *pool.Pool[value]) {
			c := p.NewCache()
			v := freehold.Must(c.Get())
			p.Reset()
			c.Put(v)
		}),
		inPool(func(w *world, p *pool.Pool[value]) {
			c := p.NewCache()
			defer c.Close()
			c.Get()
			p.Reset()
			c.Put(freehold.Must(c.Get()))
		})},
	{"use of one Cache of a pool by two goroutines", caught{race: races},
		inPool(func(w *world, p *pool.Pool[value]) {
			c := p.NewCache()
			use := func() {
				for range 10 {
					c.Get()
				}
			}
			atOnce(use, use)
		}),
		inPool(func(w *world, p *pool.Pool[value]) {
			use := func() {
				c := p.NewCache()
				defer c.Close()
				for range 10 {
					c.Get()
				}
			}
			atOnce(use, use)
		})},
	{"more blocks than a pool may have", always(refuses),
		func(w *world) {
			p := pool.New[value](w.a, &pool.Options{MaxBlocks: 1})
			get(p)
			_, w.err = p.Get()
		},
		func(w *world) {
			p := pool.New[value](w.a, &pool.Options{MaxBlocks: 1})
			p.Put(get(p))
			p.Put(get(p))
			p.Close()
		}},
	{"a pool that is never closed", caught{leak: leaks("pool.Pool dropped without Close")}.andInTests(reports("leak of")),
		func(w *world) { get(pool.New[value](w.a, nil)) },
		func(w *world) { p := pool.New[value](w.a, nil); get(p); p.Close() }},
	{"double free to Blocks", always(panics("double free")),
		inBlocks(func(w *world, p *pool.Blocks) { b := take(p); p.Free(b); p.Free(b) }),
		inBlocks(func(w *world, p *pool.Blocks) { p.Free(take(p)) })},
	{"free to Blocks of a block that the built-in append has moved", always(panics("was it moved by append?")),
		inBlocks(func(w *world, p *pool.Blocks) { p.Free(append(take(p), 1)) }),
		inBlocks(func(w *world, p *pool.Blocks) { p.Free(append(take(p)[:small-1], 1)) })},
	{"free to Blocks of a block from its middle on", always(panics("points 8 bytes into a block")),
		inBlocks(func(w *world, p *pool.Blocks) { p.Free(take(p)[8:]) }),
		inBlocks(func(w *world, p *pool.Blocks) { p.Free(take(p)) })},
	{"free to Blocks of a block with its length cut", always(panics("a slice of 50 bytes and a capacity of 100")),
		inBlocks(func(w *world, p *pool.Blocks) { p.Free(take(p)[:50]) }),
		inBlocks(func(w *world, p *pool.Blocks) { p.Free(take(p)[:50][:small]) })},
	{"free to Blocks of a block that was clipped", caught{},
		inBlocks(func(w *world, p *pool.Blocks) { p.Free(take(p)[:50:50]) }),
		inBlocks(func(w *world, p *pool.Blocks) { p.Free(freehold.Must(p.Alloc(50, 8))) })},
	{"free to Blocks of a block with its length cut to 0", always(panics("a slice of 0 bytes and a capacity of 100")),
		inBlocks(func(w *world, p *pool.Blocks) { p.Free(take(p)[:0]) }),
		inBlocks(func(w *world, p *pool.Blocks) { p.Free(take(p)[:0][:small]) })},
	{"Resize of a block of Blocks after Free", always(panics("pool.Blocks.Resize: ")),
		inBlocks(func(w *world, p *pool.Blocks) { b := take(p); p.Free(b); p.Resize(b, 50) }),
		inBlocks(func(w *world, p *pool.Blocks) { b, ok := p.Resize(take(p), 50); w.no = !ok; p.Free(b) })},
	{"Alloc of more than a pool's blocks have", always(refuses),
		inBlocks(func(w *world, p *pool.Blocks) { _, w.err = p.Alloc(small+1, 8) }),
		inBlocks(func(w *world, p *pool.Blocks) { _, w.err = p.Alloc(small, 8) })},
	{"write past the end of a block of Blocks, into its padding", caught{poison: panics("pool.Blocks.Free: block"), asan: sanitized},
		inBlocks(func(w *world, p *pool.Blocks) {
			b := take(p)
			*at(unsafe.Pointer(&b[0]), small) = 1
			p.Free(b)
		}),
		inBlocks(func(w *world, p *pool.Blocks) { b := take(p); b[small-1] = 1; p.Free(b) })},
	{"write past the end of a block of Blocks, into the next", caught{asan: sanitized},
		func(w *world) {
			p := pool.NewBlocks(w.a, class, 8, nil)
			b := take(p)
			*at(unsafe.Pointer(&b[0]), class) = 1
			p.Free(b)
		},
		func(w *world) { p := pool.NewBlocks(w.a, class, 8, nil); p.Free(take(p)); p.Close() }},
	{"write to a block after Free to Blocks, beside its next owner", caught{race: races},
		func(w *world) {
			p := pool.NewBlocks(w.a, small, 8, &pool.Options{MaxBlocks: 1})
			b := take(p)
			p.Free(b)
			c := take(p)
			atOnce(func() { touch(b) }, func() { touch(c) })
		},
		func(w *world) {
			p := pool.NewBlocks(w.a, small, 8, &pool.Options{MaxBlocks: 2})
			b, c := take(p), take(p)
			atOnce(func() { touch(b) }, func() { touch(c) })
			p.Close()
		}},
}
