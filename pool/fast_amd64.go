// Fast: get and put without a pin, in assembly.
//
// A goroutine is never preempted inside an assembly function that calls
// nothing; see internal/pin. What the assembly knows of the runtime and of the
// compiler is checked when the program starts. Where it does not hold, and
// whenever the stack has no answer, Blocks.get and Blocks.put do the work.

//go:build !race && !freehold_portable

package pool

import (
	"unsafe"

	"github.com/freehold-go/freehold/internal/pin"
)

type (
	getFunc   func(b *Blocks) (unsafe.Pointer, error)
	putFunc   func(b *Blocks, p unsafe.Pointer)
	allocFunc func(b *Blocks, size, align int) ([]byte, error)
	freeFunc  func(b *Blocks, r []byte)

	cacheGetFunc func(c *cache) (unsafe.Pointer, error)
	cachePutFunc func(c *cache, p unsafe.Pointer)
)

// What is called: functions of fast_amd64.s, if they are fit.
var (
	fastGet   getFunc   = (*Blocks).get
	fastPut   putFunc   = (*Blocks).put
	fastAlloc allocFunc = (*Blocks).alloc
	fastFree  freeFunc  = (*Blocks).free

	fastCacheGet cacheGetFunc = (*cache).get
	fastCachePut cachePutFunc = (*cache).put
)

// Where the assembly goes on.
var (
	plainGet   getFunc   = (*Blocks).get
	plainPut   putFunc   = (*Blocks).put
	plainAlloc allocFunc = (*Blocks).alloc
	plainFree  freeFunc  = (*Blocks).free

	plainCacheGet cacheGetFunc = (*cache).get
	plainCachePut cachePutFunc = (*cache).put

	clearing = cleared
)

// For the assembly.
const (
	goroutineM = pin.GM
	mProcessor = pin.MP
	processor  = pin.PID
	maxPlaces  = pin.Max
	hashFactor = golden

	maxZero = 64 // bytes that the assembly clears itself
)

// The assembly multiplies indices by these sizes.
const (
	_ = -(unsafe.Sizeof(entry{}) ^ 16)
	_ = -(unsafe.Sizeof(slot{}) ^ slotBytes)
)

// entryPoints returns the addresses of the functions in fast_amd64.s that are
// called by registers. With declarations Go would call them by way of the
// stack.
func entryPoints() (get, put, alloc, free, cacheGet, cachePut, probeGet, probeAlloc, probeFree uintptr)

var entryPoint struct{ get, put, alloc, free, cacheGet, cachePut, probeGet, probeAlloc, probeFree uintptr }

// funcAt returns the function at the address in entry, which stays there.
func funcAt[F any](entry *uintptr) F { return *(*F)(unsafe.Pointer(&entry)) }

func init() {
	e := &entryPoint
	e.get, e.put, e.alloc, e.free, e.cacheGet, e.cachePut, e.probeGet, e.probeAlloc, e.probeFree = entryPoints()
	if knowsCompiler() && pin.Known() {
		fastGet = funcAt[getFunc](&e.get)
		fastPut = funcAt[putFunc](&e.put)
		fastAlloc = funcAt[allocFunc](&e.alloc)
		fastFree = funcAt[freeFunc](&e.free)
		fastCacheGet = funcAt[cacheGetFunc](&e.cacheGet)
		fastCachePut = funcAt[cachePutFunc](&e.cachePut)
	}
}

// knowsCompiler reports whether Go functions pass arguments in the registers
// in which the assembly takes them. The probes touch no memory.
func knowsCompiler() bool {
	b, size, align := new(Blocks), 1<<20, 1<<10
	if p, err := funcAt[getFunc](&entryPoint.probeGet)(b); p != unsafe.Pointer(b) || err != nil {
		return false
	}
	r, err := funcAt[allocFunc](&entryPoint.probeAlloc)(b, size, align)
	if unsafe.Pointer(unsafe.SliceData(r)) != unsafe.Pointer(b) || len(r) != size || cap(r) != size+align || err != nil {
		return false
	}
	sum := funcAt[func(*Blocks, []byte) uintptr](&entryPoint.probeFree)(b, r)
	return sum == 3*uintptr(unsafe.Pointer(b))+4*uintptr(size)+8*uintptr(size+align)
}
