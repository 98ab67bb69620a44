// Package offheap knows freehold's functions: which calls allocate, free and
// replace blocks, and which make, end and keep owners.
package offheap

import (
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// Module is the path of the module that the analyzers are about.
const Module = "github.com/freehold-go/freehold"

// A Call is a call of one of freehold's functions, of a method of its types, or
// of a method of any [freehold.Allocator]. Name is "" for every other call.
type Call struct {
	Instr ssa.CallInstruction
	Name  string      // as a user writes it: "freehold.New", "arena.Arena.Reset"
	Recv  ssa.Value   // nil for a function
	Args  []ssa.Value // without the receiver
}

// Of returns the call that instr makes, now, deferred or in a goroutine.
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
	if c.Name == "" && c.Recv != nil && isAllocatorMethod(fn) {
		c.Name = "freehold.Allocator." + fn.Name()
	}
	return c
}

// Callee returns the function or method that a call names, generic if it is an
// instance, or nil for a call of a function value.
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

// Name returns fn's name as a user writes it if it is exported by freehold, else
// "".
func Name(fn *types.Func) string {
	if fn.Pkg() == nil || !fn.Exported() {
		return ""
	}
	pkg, ok := strings.CutPrefix(fn.Pkg().Path(), Module)
	if !ok || strings.Contains(pkg, "/internal") || strings.Count(pkg, "/") > 1 {
		return ""
	}
	if pkg == "" {
		pkg = "freehold"
	}
	name := strings.TrimPrefix(pkg, "/") + "."
	if recv := fn.Signature().Recv(); recv != nil {
		named := namedOf(recv.Type())
		if named == nil {
			return ""
		}
		name += named.Obj().Name() + "."
	}
	return name + fn.Name()
}

// TypeName returns the name of a type of freehold, or of what it points to, as a
// user writes it: "arena.Arena". It returns "" for other types.
func TypeName(t types.Type) string {
	named := namedOf(t)
	if named == nil || named.Obj().Pkg() == nil {
		return ""
	}
	pkg, ok := strings.CutPrefix(named.Obj().Pkg().Path(), Module)
	if !ok {
		return ""
	}
	if pkg == "" {
		pkg = "freehold"
	}
	return strings.TrimPrefix(pkg, "/") + "." + named.Obj().Name()
}

func namedOf(t types.Type) *types.Named {
	t = types.Unalias(t)
	if p, ok := t.(*types.Pointer); ok {
		t = types.Unalias(p.Elem())
	}
	named, _ := t.(*types.Named)
	return named
}

// isAllocatorMethod reports whether fn has the name and the signature of one of
// the methods of freehold.Allocator, and its type has all of them.
func isAllocatorMethod(fn *types.Func) bool {
	if !slices.Contains(allocatorMethods, fn.Name()) {
		return false
	}
	recv := fn.Signature().Recv().Type()
	for _, name := range allocatorMethods {
		obj, _, _ := types.LookupFieldOrMethod(recv, true, fn.Pkg(), name)
		method, ok := obj.(*types.Func)
		if !ok || signatureOf(method) != allocatorSignatures[name] {
			return false
		}
	}
	return true
}

var allocatorMethods = []string{"Alloc", "Zeroed", "Resize", "Free"}

var allocatorSignatures = map[string]string{
	"Alloc":  "int,int:[]uint8,error",
	"Zeroed": "int,int:[]uint8,error",
	"Resize": "[]uint8,int:[]uint8,bool",
	"Free":   "[]uint8:",
}

// signatureOf returns the types of fn's parameters and results.
func signatureOf(fn *types.Func) string {
	list := func(tuple *types.Tuple) string {
		var names []string
		for v := range tuple.Variables() {
			name := types.Unalias(v.Type()).String()
			names = append(names, strings.ReplaceAll(name, "[]byte", "[]uint8"))
		}
		return strings.Join(names, ",")
	}
	sig := fn.Signature()
	return list(sig.Params()) + ":" + list(sig.Results())
}

// Uses reports whether pkg imports freehold, itself or through others, or is a
// part of it. The analyzers have nothing to say about other packages.
func Uses(pkg *types.Package) bool {
	return reaches(pkg, map[*types.Package]bool{})
}

func reaches(pkg *types.Package, seen map[*types.Package]bool) bool {
	if pkg.Path() == Module {
		return true
	}
	if seen[pkg] {
		return false
	}
	seen[pkg] = true
	for _, p := range pkg.Imports() {
		if reaches(p, seen) {
			return true
		}
	}
	return false
}
