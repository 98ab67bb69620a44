// Package pointerfree defines an analyzer that reports types with Go pointers which
// are stored off-heap.
package pointerfree

import (
	"fmt"
	"go/ast"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"

	"github.com/freehold-go/freehold/analysis/internal/offheap"
)

const doc = `report types with Go pointers that are stored off-heap

The collector does not scan off-heap memory, so it would free the target of a Go
pointer there. freehold's typed functions panic at the first use of a type with such
a pointer. The analyzer reports the same at build time, in the same words:

	type Node struct{ key string }
	n, err := freehold.New[Node](heap)

	freehold: New[Node]: field key is a string, which points into the Go heap; use freehold.String

The analyzer follows generic functions and methods that store values of their type
parameters off-heap, across packages. It reports a call with a type that holds Go
pointers where the type is chosen.`

// Analyzer reports types with Go pointers that are stored off-heap.
var Analyzer = &analysis.Analyzer{
	Name:      "pointerfree",
	Doc:       doc,
	URL:       "https://pkg.go.dev/github.com/freehold-go/freehold/analysis/pointerfree",
	Requires:  []*analysis.Analyzer{inspect.Analyzer},
	FactTypes: []analysis.Fact{(*stores)(nil)},
	Run:       run,
}

// typed is the functions that check their type arguments for Go pointers. Their panics omit
// "freehold." from the names.
var typed = map[string][]param{
	"freehold.New":       only,
	"freehold.MakeSlice": only,
	"freehold.Append":    only,
	"freehold.Grow":      only,
	"freehold.Clone":     only,
	"pool.New":           only,
	"vector.New":         only,
	"vector.NewChunked":  only,
	"hashmap.New":        {{"K=", offheap.IsString}, {"V=", offheap.IsText}},
	"hashmap.NewShared":  {{"K=", offheap.IsString}, {"V=", offheap.IsText}},
	"btree.New":          {{"K=", offheap.IsString}, {"V=", nil}},
	"btree.NewFunc":      {{"K=", nil}, {"V=", nil}},
}

// A param is a type parameter.
type param struct {
	name   string                // its name in the panic, in front of the type
	copies func(types.Type) bool // reports types that the function copies off-heap; nil if none
}

// only is the parameters of a function with a single one.
var only = []param{{}}

// stores is a fact about a generic function or method: it stores values of some of its type
// parameters, or its receiver's, off-heap.
type stores struct{ Params []int }

func (*stores) AFact()           {}
func (s *stores) String() string { return fmt.Sprintf("stores %v", s.Params) }

func run(pass *analysis.Pass) (any, error) {
	if offheap.Root(pass.Pkg) == nil {
		return nil, nil
	}
	root := pass.ResultOf[inspect.Analyzer].(*inspector.Inspector).Root()
	for learn(pass, root) { // until there are no new facts about the package's own functions
	}
	for at := range root.Preorder((*ast.Ident)(nil)) {
		report(pass, at.Node().(*ast.Ident))
	}
	return nil, nil
}

// learn exports new facts about the package's functions, and reports whether there were any.
func learn(pass *analysis.Pass, root inspector.Cursor) (more bool) {
	for at := range root.Preorder((*ast.FuncDecl)(nil)) {
		fn := pass.TypesInfo.Defs[at.Node().(*ast.FuncDecl).Name].(*types.Func)
		params := typeParams(fn)
		if params.Len() == 0 {
			continue
		}
		var fact stores
		pass.ImportObjectFact(fn, &fact)
		known := len(fact.Params)
		for id := range at.Preorder((*ast.Ident)(nil)) {
			for _, t := range storedTypes(pass, id.Node().(*ast.Ident)) {
				for i := range params.Len() {
					if holds(t.arg, params.At(i)) && !slices.Contains(fact.Params, i) {
						fact.Params = append(fact.Params, i)
					}
				}
			}
		}
		if len(fact.Params) > known {
			slices.Sort(fact.Params)
			pass.ExportObjectFact(fn, &fact)
			more = true
		}
	}
	return more
}

// typeParams returns the type parameters of a function, or of its receiver.
func typeParams(fn *types.Func) *types.TypeParamList {
	if sig := fn.Signature(); sig.Recv() != nil {
		return sig.RecvTypeParams()
	}
	return fn.Signature().TypeParams()
}

// A storedType is a type argument whose values a function stores off-heap.
type storedType struct {
	function string // its name in the panic
	param    string // the type parameter's name; for freehold's functions, as in the panic
	arg      types.Type
}

// storedTypes returns the types that the function named by id stores off-heap.
func storedTypes(pass *analysis.Pass, id *ast.Ident) (all []storedType) {
	fn, ok := pass.TypesInfo.Uses[id].(*types.Func)
	if !ok {
		return nil
	}
	args := typeArgs(pass, id, fn)
	if args.Len() == 0 {
		return nil
	}
	name := offheap.Name(fn.Origin())
	if params, ok := typed[name]; ok {
		for i, p := range params {
			if p.copies == nil || !p.copies(args.At(i)) {
				all = append(all, storedType{strings.TrimPrefix(name, "freehold."), p.name, args.At(i)})
			}
		}
		return all
	}
	var fact stores
	pass.ImportObjectFact(fn.Origin(), &fact)
	for _, i := range fact.Params {
		if i < args.Len() {
			all = append(all, storedType{fn.Name(), typeParams(fn.Origin()).At(i).Obj().Name(), args.At(i)})
		}
	}
	return all
}

// typeArgs returns the type arguments of a function, or of its receiver.
func typeArgs(pass *analysis.Pass, id *ast.Ident, fn *types.Func) *types.TypeList {
	recv := fn.Signature().Recv()
	if recv == nil {
		return pass.TypesInfo.Instances[id].TypeArgs
	}
	if named := offheap.Named(recv.Type()); named != nil {
		return named.TypeArgs()
	}
	return nil
}

func report(pass *analysis.Pass, id *ast.Ident) {
	for _, t := range storedTypes(pass, id) {
		fault := faultOf(t.arg, "")
		switch {
		case fault == "":
		case t.param == "" || strings.HasSuffix(t.param, "="):
			pass.Reportf(id.Pos(), "freehold: %s[%s%s]: %s", t.function, t.param, typeName(t.arg), fault)
		default:
			pass.Reportf(id.Pos(), "%s stores its %s, here %s, off-heap: %s", t.function, t.param, typeName(t.arg), fault)
		}
	}
}
