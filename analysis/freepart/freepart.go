// Package freepart defines an analyzer that reports frees of anything but a whole
// block.
package freepart

import (
	"fmt"
	"go/types"
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/freehold-go/freehold/analysis/internal/flow"
	"github.com/freehold-go/freehold/analysis/internal/offheap"
)

const doc = `report frees of a part of a block, and of Go memory

Free takes exactly the allocated block: the slice that Alloc returned, the slice of
MakeSlice (it may be shorter if its capacity is unchanged), the string of
CloneString, the pointer of New:

	b, err := heap.Alloc(4096, 8)
	n, err := r.Read(b)
	b = b[:n]
	heap.Free(b) // panics, unless n is 4096

The analyzer reports slices that begin later or are shorter than their block,
addresses of fields and elements, pointers to another type, and memory that no
allocator of freehold returned: variables, make, new, literals. It does not report a
slice whose length may equal the block's.`

// Analyzer reports frees of anything but a whole block.
var Analyzer = flow.Analyzer("freepart", doc, func(pass *flow.Pass, fn *ssa.Function) {
	for call := range flow.CallsIn(fn) {
		c := offheap.Of(call)
		end, _ := c.Ends()
		if end.Block == nil || c.Keeps() {
			continue
		}
		if fault := faultOf(c, end.Block, pass.TypesSizes); fault != "" {
			pass.Reportf(call.Common().Pos(), "%s of %s, which is %s", pass.Text(call), pass.Name(c, end.Block, "an argument"), fault)
		}
	}
})

// faultOf returns a description of a freed value that is not a whole block, or "".
func faultOf(c offheap.Call, v ssa.Value, sizes types.Sizes) string {
	if fault := flow.GoMemory(v); fault != "" && !c.Own { // an allocator of the user's own may have such blocks
		return fault
	}
	if _, ok := v.Type().Underlying().(*types.Slice); ok || offheap.IsString(v.Type()) {
		return partOfSlice(c, v)
	}
	return partOfValue(c, v, sizes)
}

// partOfSlice returns a description of a slice or string that is only a part of a block, or "".
func partOfSlice(c offheap.Call, v ssa.Value) string {
	seen := map[ssa.Value]bool{}
	for outermost := true; !seen[v]; outermost = false {
		seen[v] = true
		v = flow.Value(v)
		if phi, ok := v.(*ssa.Phi); ok {
			return partOfPhi(phi)
		}
		s, ok := v.(*ssa.Slice)
		if !ok {
			return ""
		}
		switch block, known := flow.BlockOf(flow.Base(s)); {
		case !known:
			return ""
		case !isZero(s.Low):
			return "not the beginning of its block"
		case c.TakesCut():
		case s.Max != nil && !whole(s.Max, s.X, block):
			return "cut off from the rest of its block"
		case outermost && !c.TakesShorter() && s.High != nil && !whole(s.High, s.X, block):
			return "shorter than its block"
		}
		v = s.X
	}
	return ""
}

// partOfPhi looks for an assignment that drops the beginning of a block, as in a
// loop with b = b[n:].
func partOfPhi(phi *ssa.Phi) string {
	isBlock := func(edge ssa.Value) bool { _, ok := flow.BlockOf(edge); return ok }
	drops := func(edge ssa.Value) bool {
		s, ok := flow.Value(edge).(*ssa.Slice)
		return ok && flow.Value(s.X) == phi && !isZero(s.Low)
	}
	if slices.ContainsFunc(phi.Edges, isBlock) && slices.ContainsFunc(phi.Edges, drops) {
		return "not the beginning of its block after the loop"
	}
	return ""
}

// whole reports whether a slice up to n is, or may be, all of a block.
func whole(n, of ssa.Value, block flow.Block) bool {
	n = flow.Value(n)
	if call, ok := n.(*ssa.Call); ok && offheap.Of(call).Name == "" {
		return true // len or cap, or a function that may know
	}
	if block.Size == nil {
		return !offheap.IsString(of.Type())
	}
	size := flow.Value(block.Size)
	if flow.Same(n, size) {
		return true
	}
	_, constant := flow.Int(n)
	_, known := flow.Int(size)
	return constant && !known
}

func isZero(v ssa.Value) bool {
	if v == nil {
		return true
	}
	n, ok := flow.Int(v)
	return ok && n == 0
}

// partOfValue returns a description of a pointer to only a part of a value, or "".
func partOfValue(c offheap.Call, v ssa.Value, sizes types.Sizes) string {
	block, known := flow.BlockOf(flow.Base(v))
	if !known {
		return ""
	}
	inner := flow.Value(v)
	for convert, ok := inner.(*ssa.Convert); ok; convert, ok = inner.(*ssa.Convert) {
		inner = flow.Value(convert.X)
	}
	switch x := inner.(type) {
	case *ssa.FieldAddr:
		if x.Field > 0 {
			return "a field of its block"
		}
	case *ssa.IndexAddr:
		if !isZero(x.Index) {
			return "an element of its block"
		}
	case *ssa.Call:
		if flow.Builtin(x) == "Add" {
			if n, ok := flow.Int(x.Call.Args[1]); !ok || n != 0 {
				return "inside its block"
			}
		}
	}
	return otherSize(c, v, block, sizes)
}

// otherSize returns a description of a pointer that New returned and that was converted to a type
// of another size, or "".
func otherSize(c offheap.Call, v ssa.Value, block flow.Block, sizes types.Sizes) string {
	freed, ok := v.Type().Underlying().(*types.Pointer)
	if !ok || block.Call.Name != "freehold.New" {
		return ""
	}
	made := block.Call.Instr.Common().Signature().Results().At(0).Type().(*types.Pointer)
	if c.Instr.Parent().TypeParams().Len() > 0 || block.Call.Instr.Parent().TypeParams().Len() > 0 {
		return "" // the types may be parameters
	}
	if a, b := sizes.Sizeof(freed.Elem()), sizes.Sizeof(made.Elem()); a != b {
		return fmt.Sprintf("a value of %d bytes in a block of %d", a, b)
	}
	return ""
}
