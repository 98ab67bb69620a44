// Roles: the effects of a call on blocks and their owners.
//
//	allocates  its result is a block of an allocator
//	ends       a block is freed or replaced by the result, or an owner ends, or its blocks do
//	makes      its result is an owner, over its parents

package offheap

import (
	"strings"

	"golang.org/x/tools/go/ssa"
)

// last returns the part of a name after its last dot.
func last(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

// Allocates returns the allocator of the block that a call returns as its first result.
func (c Call) Allocates() (from ssa.Value, ok bool) {
	switch c.Name {
	case "freehold.New", "freehold.MakeSlice", "freehold.Append", "freehold.Grow",
		"freehold.Clone", "freehold.CloneString", "freehold.Realloc", "freehold.ReallocZeroed", "buffer.Records.Offsets":
		return c.Args[0], true
	case "freehold.Heap.Malloc", "freehold.Heap.Calloc", "freehold.Heap.ReallocPointer",
		"pool.Pool.Get", "pool.Cache.Get",
		"buffer.Buffer.Bytes", "buffer.Buffer.Extend", "buffer.Records.Append", "buffer.Records.At",
		"hashmap.Map.At", "btree.Map.At", "intern.Strings.Value", "intern.Shared.Value",
		"vector.Vector.Slice", "vector.Chunked.At", "vector.Chunked.Append":
		return c.Recv, true
	case "hashmap.Map.Get", "hashmap.Map.PutIfAbsent", "btree.Map.Min", "btree.Map.Max":
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
func (c Call) returnsText() bool { return IsText(c.Instr.Common().Signature().Results().At(0).Type()) }

// Owner returns the owner that a call is of: the receiver, or the map of a function for keys in
// bytes.
func (c Call) Owner() ssa.Value {
	switch c.Name {
	case "hashmap.GetBytes", "hashmap.PutBytes", "hashmap.UpdateBytes", "hashmap.GetSharedBytes",
		"hashmap.PutSharedBytes", "hashmap.UpdateSharedBytes", "hashmap.ViewSharedBytes",
		"hashmap.PutBytesIfAbsent", "hashmap.DeleteBytes", "hashmap.PutSharedBytesIfAbsent",
		"hashmap.AppendSharedBytes", "hashmap.DeleteSharedBytes", "hashmap.DeleteSharedBytesIf":
		return c.Args[0]
	}
	return c.Recv
}

// Key returns the key of the entry whose block a call returns, or nil.
func (c Call) Key() ssa.Value {
	switch c.Name {
	case "hashmap.Map.Get", "hashmap.Map.PutIfAbsent", "hashmap.Map.At", "btree.Map.At":
		return c.Args[0]
	}
	return nil
}

// FillsBlock reports whether the slice that a call allocates has no capacity beyond its length.
func (c Call) FillsBlock() bool {
	switch last(c.Name) {
	case "MakeSlice", "Clone", "Realloc", "ReallocZeroed", "Alloc", "Zeroed", "Resize":
		return true
	}
	return false
}

// Size returns the size of the block that a call allocates, in bytes, or in elements for MakeSlice.
// It is nil if no argument is the size.
func (c Call) Size() ssa.Value {
	switch last(c.Name) {
	case "Alloc", "Zeroed":
		return c.Args[0]
	case "MakeSlice", "Resize":
		return c.Args[1]
	case "Realloc", "ReallocZeroed":
		return c.Args[2]
	}
	return nil
}

// Keeps reports whether the call may return the replaced block itself, if that has room left.
func (c Call) Keeps() bool { return c.Name == "freehold.Append" || c.Name == "freehold.Grow" }

// TakesCut reports whether a call that frees accepts a slice with less length and capacity than its
// block.
func (c Call) TakesCut() bool {
	switch c.Name {
	case "pool.Blocks.Free", "pool.Blocks.Retire":
		return true
	}
	return false
}

// TakesShorter reports whether a call that frees accepts a slice with less length than its block,
// but the whole capacity.
func (c Call) TakesShorter() bool { return c.Name == "freehold.FreeSlice" }

// An End is the effect of a call that ends a block, an owner, or its blocks. Either Block or Owner
// is nil.
type End struct {
	Block    ssa.Value
	To       ssa.Value // the allocator that Block goes to, or nil
	Retired  bool      // guards still protect reads of Block, but it must not be freed
	Replaced bool      // only if the call's error or bool means success, which is its second result, or for an Owner its first

	Owner  ssa.Value
	Itself bool      // Owner is closed
	Blocks bool      // the blocks of Owner end
	Key    ssa.Value // if not nil, only blocks of this key end, and the key itself
	Since  ssa.Value // if not nil, only blocks handed out after this Mark end
}

// Ends returns the End of a call, if it is one.
func (c Call) Ends() (e End, ok bool) {
	switch c.Name {
	case "freehold.Free", "freehold.FreeSlice", "freehold.FreeString":
		return End{Block: c.Args[1], To: c.Args[0]}, true
	case "freehold.Heap.FreePointer", "pool.Pool.Put", "pool.Cache.Put":
		return End{Block: c.Args[0], To: c.Recv}, true
	case "freehold.Append", "freehold.Grow", "freehold.Realloc", "freehold.ReallocZeroed":
		return End{Block: c.Args[1], Replaced: true}, true
	case "freehold.Heap.Close", "arena.Arena.Close", "arena.Shared.Close", "pool.Pool.Close", "pool.Blocks.Close", "buffer.Buffer.Close",
		"hashmap.Map.Close", "hashmap.Shared.Close", "hashmap.Frozen.Close", "btree.Map.Close", "intern.Strings.Close", "intern.Shared.Close",
		"vector.Vector.Close", "vector.Chunked.Close", "cache.Cache.Close":
		return End{Owner: c.Recv, Itself: true, Blocks: true}, true
	case "pool.Cache.Close", "arena.Recycler.Close", "epoch.Guard.Leave":
		return End{Owner: c.Recv, Itself: true}, true
	case "arena.Arena.Reset", "pool.Pool.Reset", "pool.Blocks.Reset":
		return End{Owner: c.Recv, Blocks: true}, true
	case "hashmap.Map.Clear", "btree.Map.Clear":
		return End{Owner: c.Recv, Blocks: true}, true
	case "hashmap.Map.Delete", "btree.Map.Delete", "btree.Map.Take":
		return End{Owner: c.Recv, Blocks: true, Key: c.Args[0]}, true
	case "hashmap.Map.Put":
		return End{Owner: c.Recv, Blocks: true, Key: c.Args[0], Replaced: true}, true
	case "arena.Arena.Rewind":
		return End{Owner: c.Recv, Blocks: true, Since: c.Args[0]}, true
	case "arena.Recycler.Put":
		return End{Owner: c.Args[0], Itself: true, Blocks: true}, true
	}
	if c.Recv == nil {
		return End{}, false
	}
	switch last(c.Name) {
	case "Free":
		return End{Block: c.Args[0], To: c.Recv}, true
	case "Retire":
		return End{Block: c.Args[0], To: c.Recv, Retired: true}, true
	case "Resize":
		return End{Block: c.Args[0], Replaced: true}, true
	}
	return End{}, false
}

// WorksAfter reports whether a method may be called after end has closed its owner: it only
// reports, or it is a second Close.
func (c Call) WorksAfter(end Call) bool {
	switch last(c.Name) {
	case "Stats", "Live", "Owns", "GoodSize", "String", "Remaining", "Len", "Cap", "Bytes", "InFile":
		return true
	case "Put":
		return c.Name == "arena.Recycler.Put" && end.Name != c.Name // of a closed arena: a no-op
	case "Close", "Enter":
		return end.Name != "arena.Recycler.Put"
	}
	return false
}

// An Owner is an object that must be closed.
type Owner struct {
	Name    string      // the name of its type
	Parents []ssa.Value // they must outlive it
	Closer  string      // the method that closes it, "" for a wrapper that needs none
	Failure int         // the index of the error among the results, or -1
}

// Makes returns the owner that a call makes, its first result.
func (c Call) Makes() (o Owner, ok bool) {
	o = Owner{Closer: "Close", Failure: -1}
	switch c.Name {
	case "freehold.NewHeap", "btree.Map.Clone":
	case "buffer.Open", "hashmap.OpenFrozen":
		o.Failure = 1
	case "pool.Pool.NewCache":
		o.Parents = []ssa.Value{c.Recv}
	case "freehold.NewScope", "arena.New", "arena.NewShared", "arena.NewRecycler", "pool.New", "pool.NewBlocks", "buffer.New",
		"hashmap.New", "hashmap.NewShared", "btree.New", "btree.NewFunc", "intern.New", "intern.NewShared",
		"vector.New", "vector.NewChunked", "cache.New", "cache.NewOf":
		o.Parents = c.Args[:1]
	case "arena.Recycler.Get":
		o.Parents, o.Closer, o.Failure = []ssa.Value{c.Recv}, "Put", 1
	case "freehold.NewLimit", "freehold.NewTagged", "freehold.NewLocked", "buffer.NewRecords":
		o.Parents, o.Closer = c.Args[:1], ""
	case "freehold.NewFallback":
		o.Parents, o.Closer = c.Args[:2], ""
	default:
		if last(c.Name) != "Enter" {
			return Owner{}, false
		}
		o.Parents, o.Closer = []ssa.Value{c.Recv}, "Leave"
	}
	o.Name = typeName(c.Instr.Common().Signature().Results().At(0).Type())
	return o, true
}

// Views returns the value whose memory the result of a call refers to, as for PtrTo and Get.
func (c Call) Views() (of ssa.Value, ok bool) {
	if c.Refers() {
		return c.Args[0], true
	}
	switch c.Name {
	case "freehold.Ptr.Get", "freehold.Slice.Get", "freehold.String.Get":
		return c.Recv, true
	}
	return nil, false
}

// Refers reports whether a call makes a reference that may be stored off-heap.
func (c Call) Refers() bool {
	switch c.Name {
	case "freehold.PtrTo", "freehold.SliceOf", "freehold.StringOf":
		return true
	}
	return false
}

// Touches reports whether a call of freehold reads or writes the block in its arguments, or needs
// it to be live.
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
