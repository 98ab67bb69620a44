// Blocks: the search for the call that allocated a value.

package flow

import (
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/freehold-go/freehold/analysis/internal/offheap"
)

// maxDepth is the most levels of calls that are followed into functions of the package.
const maxDepth = 3

// A Block is the result of a call that allocates. The call may be in a function of the same package
// that returns only this block or nil.
type Block struct {
	Instr ssa.Instruction // the call, in the function under analysis
	Call  offheap.Call    // the allocator's call, perhaps inside the function that Instr calls
	From  ssa.Value       // the allocator, or nil if only the callee knows it
	Size  ssa.Value       // in bytes, or in elements for MakeSlice; nil if unknown
}

// BlockOf returns the block v, if its allocation is known.
func BlockOf(v ssa.Value) (Block, bool) { return blockOf(v, maxDepth) }

func blockOf(v ssa.Value, depth int) (Block, bool) {
	v = Value(v)
	result := 0
	if x, ok := v.(*ssa.Extract); ok {
		v, result = x.Tuple, x.Index
	}
	call, ok := v.(*ssa.Call)
	if !ok {
		return Block{}, false
	}
	c := offheap.Of(call)
	if from, ok := c.Allocates(); ok && result == 0 {
		return Block{call, c, from, c.Size()}, true
	}
	callee := call.Call.StaticCallee()
	if depth == 0 || callee == nil || c.Name != "" {
		return Block{}, false
	}
	var block Block
	for _, end := range returns(callee) {
		if result >= len(end.Results) || IsNil(end.Results[result]) {
			continue
		}
		inner, ok := blockOf(end.Results[result], depth-1)
		if !ok || block.Instr != nil {
			return Block{}, false // unknown, or several ways to return a block
		}
		block = Block{call, inner.Call, argument(call, inner.From), argument(call, inner.Size)}
	}
	return block, block.Instr != nil
}

// argument returns the caller's value for a value of the callee, or nil.
func argument(call ssa.CallInstruction, v ssa.Value) ssa.Value {
	if v == nil {
		return nil
	}
	v = Value(v)
	switch v := v.(type) {
	case *ssa.Const, *ssa.Global:
		return v
	case *ssa.Parameter:
		if i := slices.Index(v.Parent().Params, v); i < len(call.Common().Args) {
			return call.Common().Args[i]
		}
	case *ssa.UnOp:
		if free, ok := v.X.(*ssa.FreeVar); ok {
			if store := captured(free); store != nil && store.Parent() == call.Parent() {
				return store.Val
			}
		}
	}
	return nil
}

// Owners returns an allocator, its parents, their parents and so on, as far as they are known.
func Owners(a ssa.Value) []ssa.Value {
	if a == nil {
		return nil
	}
	owners := []ssa.Value{a}
	for i := 0; i < len(owners) && len(owners) < maxSteps; i++ {
		if _, owner, ok := Made(owners[i]); ok {
			owners = append(owners, owner.Parents...)
		}
	}
	return owners
}

// Made returns the call that made an owner, if it is known.
func Made(v ssa.Value) (call *ssa.Call, owner offheap.Owner, ok bool) {
	v = Value(v)
	if x, ok := v.(*ssa.Extract); ok && x.Index == 0 {
		v = x.Tuple
	}
	if call, ok = v.(*ssa.Call); ok {
		owner, ok = offheap.Of(call).Makes()
	}
	return call, owner, ok
}
