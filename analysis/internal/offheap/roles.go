// Roles: what a call does to blocks and to their owners.
//
//	allocates  its result is a block of an allocator
//	frees      a block ends
//	replaces   a block ends if the call succeeds, and its result is the next
//	ends       an owner ends, or its blocks do
//	makes      its result is an owner, over its parents

package offheap

import (
	"go/types"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// last returns the part of a name after its last dot.
func last(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

// Allocates returns the allocator that a call takes a block from, the call's
// first result.
func (c Call) Allocates() (from ssa.Value, ok bool) {
	switch c.Name {
	case "freehold.New", "freehold.MakeSlice", "freehold.MakeSliceCap", "freehold.Append", "freehold.Grow",
		"freehold.Clone", "freehold.CloneString", "freehold.Realloc", "buffer.Records.Offsets":
		return c.Args[0], true
	case "freehold.Heap.Malloc", "freehold.Heap.Calloc", "freehold.Heap.ReallocPointer",
		"pool.Pool.Get", "pool.Cache.Get", "pool.BlocksCache.Get",
		"buffer.Buffer.Bytes", "buffer.Buffer.Extend", "buffer.Records.Append", "buffer.Records.At",
		"hashmap.Map.At", "btree.Map.At", "intern.Strings.Value", "intern.Shared.Value",
		"vector.Vector.Slice", "vector.Chunked.At", "vector.Chunked.Append":
		return c.Recv, true
	case "hashmap.Map.Get", "btree.Map.Min", "btree.Map.Max":
		return c.Recv, c.returnsText()
	case "hashmap.GetBytes":
		return c.Args[0], c.returnsText()
	}
	switch last(c.Name) {
	case "Alloc", "Zeroed", "Resize":
		return c.Recv, true
	}
	return nil, false
}

// returnsText reports whether the first result of a call is a string or a []byte.
func (c Call) returnsText() bool {
	t := c.Instr.Common().Signature().Results().At(0).Type().Underlying()
	if s, ok := t.(*types.Slice); ok {
		t = s.Elem().Underlying()
		return types.Identical(t, types.Typ[types.Byte])
	}
	return types.Identical(t, types.Typ[types.String])
}

// FillsBlock reports whether the slice that a call allocates has no capacity
// beyond its length.
func (c Call) FillsBlock() bool {
	switch c.Name {
	case "freehold.MakeSlice", "freehold.Clone", "freehold.Realloc":
		return true
	}
	switch last(c.Name) {
	case "Alloc", "Zeroed", "Resize":
		return true
	}
	return false
}

// Frees returns the block that a call frees, and to whom.
func (c Call) Frees() (block, to ssa.Value, ok bool) {
	switch c.Name {
	case "freehold.Free", "freehold.FreeSlice", "freehold.FreeString":
		return c.Args[1], c.Args[0], true
	case "freehold.Heap.FreePointer", "pool.Pool.Put", "pool.Cache.Put", "pool.BlocksCache.Put":
		return c.Args[0], c.Recv, true
	}
	if last(c.Name) == "Free" && c.Recv != nil {
		return c.Args[0], c.Recv, true
	}
	return nil, nil, false
}

// Retires returns the block that a call retires: it may be read on, under a
// guard, and it must not be freed.
func (c Call) Retires() (block, to ssa.Value, ok bool) {
	if last(c.Name) == "Retire" {
		return c.Args[0], c.Recv, true
	}
	return nil, nil, false
}

// Replaces returns the block that a call replaces by its result if it succeeds.
// result is the index of the error or the bool that says so, or -1.
func (c Call) Replaces() (block ssa.Value, result int, ok bool) {
	switch c.Name {
	case "freehold.Append", "freehold.Grow", "freehold.Realloc":
		return c.Args[1], 1, true
	}
	if last(c.Name) == "Resize" && c.Recv != nil {
		return c.Args[0], 1, true
	}
	return nil, 0, false
}

// Keeps reports whether a replaced block may be the result itself, as if it had
// room left.
func (c Call) Keeps() bool { return c.Name == "freehold.Append" || c.Name == "freehold.Grow" }

// TakesCut reports whether a call that frees takes a slice for its whole block
// that has lost length and capacity.
func (c Call) TakesCut() bool {
	switch c.Name {
	case "pool.Blocks.Free", "pool.Blocks.Retire", "pool.BlocksCache.Put":
		return true
	}
	return false
}

// TakesShorter reports whether a call that frees takes a slice for its whole block
// that has lost length alone.
func (c Call) TakesShorter() bool { return c.Name == "freehold.FreeSlice" }

// An End is a call after which an owner, or what it has handed out, is gone.
type End struct {
	Owner  ssa.Value
	Itself bool      // the owner is closed
	Blocks bool      // its blocks have ended
	Since  ssa.Value // only those handed out after this Mark, if not nil
}

// Ends returns what a call ends.
func (c Call) Ends() (e End, ok bool) {
	switch c.Name {
	case "freehold.Heap.Close", "arena.Arena.Close", "arena.Shared.Close", "pool.Pool.Close", "pool.Blocks.Close", "buffer.Buffer.Close",
		"hashmap.Map.Close", "hashmap.Shared.Close", "btree.Map.Close", "intern.Strings.Close", "intern.Shared.Close",
		"vector.Vector.Close", "vector.Chunked.Close":
		return End{Owner: c.Recv, Itself: true, Blocks: true}, true
	case "freehold.Cache.Close", "pool.Cache.Close", "pool.BlocksCache.Close", "arena.Recycler.Close", "epoch.Guard.Leave":
		return End{Owner: c.Recv, Itself: true}, true
	case "arena.Arena.Reset", "pool.Pool.Reset", "pool.Blocks.Reset":
		return End{Owner: c.Recv, Blocks: true}, true
	case "arena.Arena.Rewind":
		return End{Owner: c.Recv, Blocks: true, Since: c.Args[0]}, true
	case "arena.Recycler.Put":
		return End{Owner: c.Args[0], Itself: true, Blocks: true}, true
	}
	return End{}, false
}

// WorksAfter reports whether a method may be called on an owner that end has
// closed: it only reports, or it is Close again.
func (c Call) WorksAfter(end Call) bool {
	switch last(c.Name) {
	case "Stats", "Live", "Owns", "GoodSize", "String", "LogValue", "Remaining", "BlockSize", "Len", "Cap", "Bytes", "InFile":
		return true
	case "Put":
		return c.Name == "arena.Recycler.Put" && end.Name != c.Name // of a closed arena: a no-op
	case "Close", "Enter":
		return end.Name != "arena.Recycler.Put"
	}
	return false
}

// An Owner is what a call makes that somebody must close.
type Owner struct {
	Parents []ssa.Value // which must outlive it
	Closer  string      // the method that closes it, "" for a wrapper that needs none
	Failure int         // the index of the error among the results, or -1
	Name    string      // of its type, for messages
}

// Makes returns the owner that a call makes, its first result.
func (c Call) Makes() (o Owner, ok bool) {
	o = Owner{Closer: "Close", Failure: -1}
	switch c.Name {
	case "freehold.NewHeap":
		o.Name = "Heap"
	case "freehold.Heap.NewCache":
		o.Parents, o.Name = []ssa.Value{c.Recv}, "Cache"
	case "pool.Pool.NewCache", "pool.Blocks.NewCache":
		o.Parents, o.Name = []ssa.Value{c.Recv}, "cache of the pool"
	case "arena.New":
		o.Parents, o.Name = c.Args[:1], "Arena"
	case "arena.NewShared":
		o.Parents, o.Name = c.Args[:1], "Shared"
	case "arena.NewRecycler":
		o.Parents, o.Name = c.Args[:1], "Recycler"
	case "arena.Recycler.Get":
		o.Parents, o.Closer, o.Failure, o.Name = []ssa.Value{c.Recv}, "Put", 1, "Arena"
	case "pool.New":
		o.Parents, o.Name = c.Args[:1], "Pool"
	case "pool.NewBlocks":
		o.Parents, o.Name = c.Args[:1], "Blocks"
	case "buffer.New":
		o.Parents, o.Name = c.Args[:1], "Buffer"
	case "hashmap.New", "btree.New", "btree.NewFunc":
		o.Parents, o.Name = c.Args[:1], "Map"
	case "hashmap.NewShared":
		o.Parents, o.Name = c.Args[:1], "Shared"
	case "intern.New":
		o.Parents, o.Name = c.Args[:1], "Strings"
	case "intern.NewShared":
		o.Parents, o.Name = c.Args[:1], "Shared"
	case "vector.New":
		o.Parents, o.Name = c.Args[:1], "Vector"
	case "vector.NewChunked":
		o.Parents, o.Name = c.Args[:1], "Chunked"
	case "buffer.Open":
		o.Failure, o.Name = 1, "Buffer"
	case "freehold.NewLimit", "freehold.NewTagged", "freehold.NewLocked", "buffer.NewRecords":
		o.Parents, o.Closer = c.Args[:1], ""
	case "freehold.NewFallback":
		o.Parents, o.Closer = c.Args[:2], ""
	default:
		if last(c.Name) != "Enter" {
			return Owner{}, false
		}
		o.Parents, o.Closer, o.Name = []ssa.Value{c.Recv}, "Leave", "Guard"
	}
	return o, true
}

// Views returns the value whose memory a call's result refers to: of PtrTo and
// Get, for instance.
func (c Call) Views() (of ssa.Value, ok bool) {
	switch c.Name {
	case "freehold.PtrTo", "freehold.SliceOf", "freehold.StringOf":
		return c.Args[0], true
	case "freehold.Ptr.Get", "freehold.Slice.Get", "freehold.String.Get":
		return c.Recv, true
	}
	return nil, false
}

// Touches reports whether a call of freehold reads or writes the block that it
// gets as an argument, or must get a live one.
func (c Call) Touches() bool {
	if _, ok := c.Views(); ok {
		return false
	}
	switch last(c.Name) {
	case "Owns", "IsNil", "Len", "Lookup":
		return false
	}
	return true
}
