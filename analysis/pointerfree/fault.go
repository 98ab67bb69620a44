// Faults: the Go pointers in a type.
//
// The sentences equal the errors of freehold.PointerFree, which uses package reflect.

package pointerfree

import (
	"fmt"
	"go/types"
	"strings"
)

// faultOf returns a sentence about the first Go pointer in t, or "". path is the path of fields
// from the inspected type to t. A type parameter is no fault, but its type arguments may be.
func faultOf(t types.Type, path string) string {
	var what, use string
	if _, ok := types.Unalias(t).(*types.TypeParam); ok {
		return ""
	}
	if types.TypeString(types.Unalias(t), nil) == "time.Time" {
		return fmt.Sprintf("%s is a time.Time, which points into the Go heap; use its UnixNano", subject(path))
	}
	switch u := t.Underlying().(type) {
	case *types.Struct:
		for f := range u.Fields() {
			name := f.Name()
			if path != "" {
				name = path + "." + name
			}
			if fault := faultOf(f.Type(), name); fault != "" {
				return fault
			}
		}
		return ""
	case *types.Array:
		if u.Len() == 0 {
			return ""
		}
		return faultOf(u.Elem(), path+"[0]")
	case *types.Basic:
		switch u.Kind() {
		case types.String:
			what, use = "a string", "use freehold.String"
		case types.UnsafePointer:
			what, use = "an unsafe.Pointer", "use freehold.Ptr or a uintptr"
		default: // numbers and bool
			return ""
		}
	case *types.Slice:
		what = "a []" + typeName(u.Elem())
		use = "use freehold.Slice[" + typeName(u.Elem()) + "]"
	case *types.Pointer:
		what = "a *" + typeName(u.Elem())
		use = "use freehold.Ptr[" + typeName(u.Elem()) + "]"
	case *types.Interface:
		what, use = "an interface", "use a concrete type without Go pointers"
	case *types.Map:
		what, use = "a map", "keep it in a Go slice and store its index"
	case *types.Chan:
		what, use = "a chan", "keep it in a Go slice and store its index"
	case *types.Signature:
		what, use = "a func", "keep it in a Go slice and store its index"
	default:
		return ""
	}
	return fmt.Sprintf("%s is %s, which points into the Go heap; %s", subject(path), what, use)
}

// subject returns path as the subject of a sentence.
func subject(path string) string {
	switch {
	case path == "":
		return "it"
	case path[0] == '[':
		return "element " + path
	}
	return "field " + path
}

// holds reports whether a value of type t contains a value of type p.
func holds(t types.Type, p *types.TypeParam) bool {
	t = types.Unalias(t)
	if t == p {
		return true
	}
	switch u := t.Underlying().(type) {
	case *types.Struct:
		for f := range u.Fields() {
			if holds(f.Type(), p) {
				return true
			}
		}
	case *types.Array:
		return u.Len() > 0 && holds(u.Elem(), p)
	}
	return false
}

// typeName returns t's name as package reflect writes it, without the package of a declared type.
func typeName(t types.Type) string {
	if named, ok := types.Unalias(t).(*types.Named); ok {
		return named.Obj().Name() + typeArgsOf(named)
	}
	return typeText(t, (*types.Package).Name)
}

// typeText returns t as package reflect writes it.
func typeText(t types.Type, pkg types.Qualifier) string {
	switch t := types.Unalias(t).(type) {
	case *types.Named:
		if t.Obj().Pkg() == nil {
			return t.Obj().Name()
		}
		return pkg(t.Obj().Pkg()) + "." + t.Obj().Name() + typeArgsOf(t)
	case *types.Basic:
		return types.Typ[t.Kind()].Name() // uint8 for byte
	case *types.Pointer:
		return "*" + typeText(t.Elem(), pkg)
	case *types.Slice:
		return "[]" + typeText(t.Elem(), pkg)
	case *types.Array:
		return fmt.Sprintf("[%d]%s", t.Len(), typeText(t.Elem(), pkg))
	case *types.Map:
		return "map[" + typeText(t.Key(), pkg) + "]" + typeText(t.Elem(), pkg)
	case *types.Interface:
		if t.Empty() {
			return "interface {}"
		}
	}
	return types.TypeString(t, pkg)
}

// typeArgsOf returns the type arguments of a type, in brackets, with the paths of their packages.
func typeArgsOf(named *types.Named) string {
	if named.TypeArgs().Len() == 0 {
		return ""
	}
	var args []string
	for t := range named.TypeArgs().Types() {
		args = append(args, typeText(t, pathOf))
	}
	return "[" + strings.Join(args, ",") + "]"
}

// pathOf returns the path of a package as the linker knows it.
func pathOf(pkg *types.Package) string {
	if pkg.Name() == "main" {
		return "main"
	}
	return pkg.Path()
}
