// Package offheap models freehold's functions: it tells which calls allocate, free and replace
// blocks, and which make, end and keep owners.
package offheap

import (
	"cmp"
	"go/types"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// module is the path of the freehold module.
const module = "github.com/freehold-go/freehold"

// A Call is a call of one of freehold's functions, of a method of its types, or
// of a method of any [freehold.Allocator]. Name is "" for every other call.
type Call struct {
	Instr ssa.CallInstruction
	Name  string      // as a user writes it: "freehold.New", "arena.Arena.Reset"
	Own   bool        // a method of an allocator that is not freehold's
	Recv  ssa.Value   // nil for a function
	Args  []ssa.Value // without the receiver
}

// Of returns the call of instr, which may be deferred or in a goroutine.
func Of(instr ssa.CallInstruction) Call {
	common := instr.Common()
	c := Call{Instr: instr, Args: common.Args}
	fn := Callee(common)
	if fn == nil {
		return c
	}
	if fn.Signature().Recv() != nil {
		if common.IsInvoke() {
			c.Recv = common.Value
		} else if len(c.Args) > 0 {
			c.Recv, c.Args = c.Args[0], c.Args[1:]
		}
	}
	c.Name = Name(fn)
	if pkg := instr.Parent().Pkg; c.Name == "" && c.Recv != nil && pkg != nil && isAllocatorMethod(fn, pkg.Pkg) {
		c.Name = "freehold.Allocator." + fn.Name()
		c.Own = !strings.HasPrefix(fn.Pkg().Path(), module)
	}
	return c
}

// Callee returns the called function or method, or the generic function if it is an instance. It
// returns nil for a call of a function value.
func Callee(common *ssa.CallCommon) *types.Func {
	if common.IsInvoke() {
		return common.Method
	}
	static := common.StaticCallee()
	if static == nil {
		return nil
	}
	if origin := static.Origin(); origin != nil {
		static = origin
	}
	fn, _ := static.Object().(*types.Func)
	if fn == nil {
		return nil
	}
	return fn.Origin()
}

// Name returns fn's name as a user writes it, or "" if freehold does not export fn.
func Name(fn *types.Func) string {
	if fn.Pkg() == nil || !fn.Exported() {
		return ""
	}
	pkg, ok := strings.CutPrefix(fn.Pkg().Path(), module)
	if !ok || strings.Contains(pkg, "/internal") || strings.Count(pkg, "/") > 1 {
		return ""
	}
	name := cmp.Or(strings.TrimPrefix(pkg, "/"), "freehold") + "."
	if recv := fn.Signature().Recv(); recv != nil {
		name += typeName(recv.Type()) + "."
	}
	return name + fn.Name()
}

// Named returns t or the type to which t points, if that is a declared type, or nil.
func Named(t types.Type) *types.Named {
	t = types.Unalias(t)
	if p, ok := t.(*types.Pointer); ok {
		t = types.Unalias(p.Elem())
	}
	named, _ := t.(*types.Named)
	return named
}

// typeName returns the name of the type that Named returns, or "".
func typeName(t types.Type) string {
	if named := Named(t); named != nil {
		return named.Obj().Name()
	}
	return ""
}

// isAllocatorMethod reports whether fn is a method of freehold.Allocator on a type that implements
// it. from is a package that uses freehold.
func isAllocatorMethod(fn *types.Func, from *types.Package) bool {
	switch fn.Name() {
	case "Alloc", "Zeroed", "Resize", "Free":
	default:
		return false
	}
	freehold := Root(from)
	if freehold == nil {
		return false
	}
	allocator := freehold.Scope().Lookup("Allocator").Type().Underlying().(*types.Interface)
	recv := fn.Signature().Recv().Type()
	return types.Implements(recv, allocator) || types.Implements(types.NewPointer(recv), allocator)
}

// Root returns the package freehold if pkg imports it, directly or through others, or nil. The
// analyzers skip packages for which it is nil.
func Root(pkg *types.Package) *types.Package { return root(pkg, map[*types.Package]bool{}) }

func root(pkg *types.Package, seen map[*types.Package]bool) *types.Package {
	if pkg.Path() == module {
		return pkg
	}
	seen[pkg] = true
	for _, p := range pkg.Imports() {
		if !seen[p] {
			if found := root(p, seen); found != nil {
				return found
			}
		}
	}
	return nil
}

// IsString reports whether t is a string.
func IsString(t types.Type) bool {
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsString != 0
}

// IsText reports whether t is a string or a []byte.
func IsText(t types.Type) bool {
	s, ok := t.Underlying().(*types.Slice)
	if !ok {
		return IsString(t)
	}
	b, ok := s.Elem().Underlying().(*types.Basic)
	return ok && b.Kind() == types.Uint8
}
