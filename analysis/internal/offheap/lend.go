// Loans: memory that freehold gives to a function of the user, until it returns.

package offheap

import (
	"cmp"
	"go/types"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// Lends returns the function that a call gives memory to.
func (c Call) Lends() (to ssa.Value, ok bool) {
	switch c.Name {
	case "cache.Cache.View", "cache.Cache.Peek", "cache.Cache.GetMany", "cache.Cache.Update",
		"hashmap.Shared.View", "hashmap.Frozen.View", "hashmap.ViewSharedBytes", "hashmap.Map.Update", "hashmap.UpdateBytes":
		return c.Args[len(c.Args)-1], true
	}
	return nil, false
}

// LendsEach reports whether a call returns an iterator over memory that is valid for one
// iteration.
func (c Call) LendsEach() bool {
	switch c.Name {
	case "cache.Cache.All", "extsort.Sorted", "extsort.SortedSeq":
		return true
	}
	return false
}

// LendsBy returns the name of an option that addr is the address of, if the option is a
// function that gets memory. returns says that the function may return it.
func LendsBy(addr *ssa.FieldAddr) (name string, returns, ok bool) {
	of := Named(addr.X.Type())
	if of == nil || of.Obj().Pkg() == nil {
		return "", false, false
	}
	pkg, ok := strings.CutPrefix(of.Obj().Pkg().Path(), module)
	if !ok {
		return "", false, false
	}
	field := of.Underlying().(*types.Struct).Field(addr.Field).Name()
	name = cmp.Or(strings.TrimPrefix(pkg, "/"), "freehold") + "." + of.Obj().Name() + "." + field
	switch name {
	case "cache.Options.OnEvict", "cache.Codec.Decode":
		return name, false, true
	case "extsort.Options.Key":
		return name, true, true
	}
	return "", false, false
}

// IsEntry reports whether t is a cache.Entry, which is an EntryOf[[]byte].
func IsEntry(t types.Type) bool {
	n, ok := types.Unalias(t).(*types.Named)
	return ok && n.Obj().Name() == "EntryOf" && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == module+"/cache" &&
		n.TypeArgs().Len() == 1 && IsText(n.TypeArgs().At(0))
}
