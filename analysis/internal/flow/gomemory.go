// Go memory: of the Go heap, of stacks and of variables.

package flow

import (
	"cmp"
	"go/constant"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/freehold-go/freehold/analysis/internal/offheap"
)

// GoMemory returns a description of v if v is or refers to Go memory, or "" if that is not
// certain.
func GoMemory(v ssa.Value) string { return goMemory(v, maxDepth) }

func goMemory(v ssa.Value, depth int) string {
	switch base := Base(v).(type) {
	case *ssa.Alloc:
		array, ok := base.Type().Underlying().(*types.Pointer).Elem().Underlying().(*types.Array)
		switch {
		case !ok:
			return "a Go variable"
		case array.Len() > 0:
			return "memory of the Go heap"
		}
	case *ssa.Global:
		return "a Go variable"
	case *ssa.MakeSlice:
		if n, ok := Int(base.Cap); !ok || n > 0 {
			return "memory of the Go heap"
		}
	case *ssa.Const:
		if base.Value != nil && base.Value.Kind() == constant.String && constant.StringVal(base.Value) != "" {
			return "a constant"
		}
	case *ssa.BinOp:
		if base.Op == token.ADD && offheap.IsString(base.Type()) {
			return "a string of the Go heap"
		}
	case *ssa.Convert:
		if offheap.IsString(base.Type()) || offheap.IsString(base.X.Type()) {
			return "a copy in the Go heap"
		}
	case *ssa.Phi:
		return goMemoryOfAll(base, depth)
	case *ssa.Extract:
		if call, ok := base.Tuple.(*ssa.Call); ok && base.Index == 0 && makesGoMemory(call) {
			return "memory of the Go heap"
		}
	case *ssa.Call:
		args := base.Call.Args
		if makesGoMemory(base) || Builtin(base) == "append" && depth > 0 && (IsNil(args[0]) || goMemory(args[0], depth-1) != "") {
			return "memory of the Go heap"
		}
	}
	return ""
}

// goMemoryOfAll returns the description of the first value of a Phi if all are Go memory.
func goMemoryOfAll(phi *ssa.Phi, depth int) (first string) {
	for _, edge := range phi.Edges {
		kind := ""
		if depth > 0 {
			kind = goMemory(edge, depth-1)
		}
		if kind == "" {
			return ""
		}
		first = cmp.Or(first, kind)
	}
	return first
}

// makesGoMemory reports whether the first result of a call, of the standard library, is new.
func makesGoMemory(call *ssa.Call) bool {
	fn := offheap.Callee(&call.Call)
	if fn == nil || fn.Pkg() == nil {
		return false
	}
	name := fn.Pkg().Path() + "." + fn.Name()
	return strings.HasPrefix(name, "fmt.Sprint") || strings.HasPrefix(name, "strconv.Format") || slices.Contains([]string{
		"bytes.Clone", "encoding/json.Marshal", "io.ReadAll", "os.ReadFile", "slices.Clone", "slices.Collect",
		"strconv.Itoa", "strconv.Quote", "strings.Clone",
	}, name)
}
