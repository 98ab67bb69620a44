// Package useafterfree defines an analyzer that reports off-heap memory which is
// used after it has ended.
package useafterfree

import (
	"cmp"
	"fmt"
	"go/token"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/freehold-go/freehold/analysis/internal/flow"
	"github.com/freehold-go/freehold/analysis/internal/offheap"
)

const doc = `report off-heap memory that is used after it has ended

A block ends with its Free, with a successful Realloc, Resize, Append or Grow of
it, and with Reset, Rewind or Close of its arena, pool or heap. A string of a map ends with
Delete or Put of its key, or with Clear:

	freehold.FreeSlice(heap, xs)
	return xs[0]

The analyzer reports uses that are always after the end: reads, writes, second frees,
and calls of a closed owner. The length and the address of a freed block may still be
used. A free in one branch does not count, nor one in another function, unless that
function is in the same package and always frees its argument. Frees that are
deferred twice, or run after the deferred Close of the owner, are reported too.

The analyzer does not follow blocks in elements of slices and maps, nor fields and
shared variables that a call in between may assign, nor Reset of an arena.Shared,
which guards delay.`

// Analyzer reports uses of off-heap memory after its end.
var Analyzer = flow.Analyzer("useafterfree", doc, func(pass *flow.Pass, fn *ssa.Function) {
	c := checker{Pass: pass, ends: flow.Ends(fn)}
	if len(c.ends) > 0 {
		c.check(fn)
	}
})

type checker struct {
	*flow.Pass
	ends  []flow.End
	found []finding
}

type finding struct {
	end flow.End
	pos token.Pos
	msg string
}

func (c *checker) check(fn *ssa.Function) {
	for instr := range flow.Instructions(fn) {
		for _, use := range flow.Uses(instr) {
			c.use(instr, use)
		}
		if call, ok := instr.(ssa.CallInstruction); ok {
			c.owner(offheap.Of(call))
		}
	}
	for _, e := range c.ends {
		if e.Block != nil && !e.Replaced {
			c.secondFree(e)
		}
		if e.Deferred {
			c.order(e)
		}
	}
	slices.SortStableFunc(c.found, func(a, b finding) int { return cmp.Compare(a.pos, b.pos) })
	reported := map[any]bool{} // ends and positions: one report for each
	for _, f := range c.found {
		if !reported[f.end.Instr] && !reported[f.pos] {
			reported[f.end.Instr], reported[f.pos] = true, true
			c.ReportWith(f.end.Pos(), "it ended here", f.pos, f.msg)
		}
	}
}

func (c *checker) add(e flow.End, pos token.Pos, format string, args ...any) {
	if pos.IsValid() {
		c.found = append(c.found, finding{e, pos, fmt.Sprintf(format, args...)})
	}
}

// use reports an end that comes before a use of memory.
func (c *checker) use(instr ssa.Instruction, use flow.Use) {
	base := flow.Base(use.Value)
	for _, e := range c.ends {
		if e.Retired || !e.Before(instr) {
			continue
		}
		if e.IsOf(base, instr) && !(e.Call.Keeps() && (isCut(e.Block) || !fills(base))) {
			c.add(e, use.Pos(instr), "%s is %s after %s", c.blockName(e), use.How, c.end(e))
		} else if e.IsOfOwner(base, instr) {
			c.add(e, use.Pos(instr), "a block of %s is %s after %s, which ended it", c.ownerName(e), use.How, c.end(e))
		}
	}
}

// secondFree reports an end of the same block that comes before second.
func (c *checker) secondFree(second flow.End) {
	base := flow.Base(second.Block)
	for _, e := range c.ends {
		if e.Instr == second.Instr {
			continue
		}
		switch {
		case e.Before(second.Instr) && e.IsOf(base, second.Instr):
			if e.Replaced {
				c.add(e, second.Pos(), "%s is freed after %s, which replaced it", c.blockName(e), c.end(e))
			} else {
				c.add(e, second.Pos(), "%s is freed twice: before by %s", c.blockName(second), c.end(e))
			}
		case e.Before(second.Instr) && e.IsOfOwner(base, second.Instr):
			c.add(e, second.Pos(), "a block of %s is freed after %s, which ended it", c.ownerName(e), c.end(e))
		case second.Deferred && !e.Deferred && flow.Dominates(second.Instr, e.Instr) && e.IsOf(base, e.Instr):
			verb := "freed"
			if e.Replaced {
				verb = "replaced"
			}
			c.add(e, e.Pos(), "%s is %s here, and freed again by the deferred %s at %s",
				c.blockName(e), verb, c.Text(second.Call.Instr), c.Line(second.Pos()))
		}
	}
}

// owner reports an end, before a call, of the owner that the call needs or of the owner's parents.
func (c *checker) owner(call offheap.Call) {
	end, _ := call.Ends()
	if end.Block != nil && !end.Replaced && flow.IsNil(end.Block) {
		return
	}
	for _, v := range allocators(call) {
		for i, owner := range flow.Owners(v) {
			for _, e := range c.ends {
				if !e.Itself || !e.Before(call.Instr) || !flow.IsOne(e.Owner, owner, e.Instr, call.Instr) {
					continue
				}
				if i == 0 && !call.WorksAfter(e.Call) && !c.gotAgain(e, call) ||
					i > 0 && e.Blocks && !reports(call, e.Call) {
					c.add(e, call.Instr.Common().Pos(), "%s after %s", c.Text(call.Instr), c.end(e))
				}
			}
		}
	}
}

// gotAgain reports whether an arena that was put into a Recycler may have been taken out again
// before a call.
func (c *checker) gotAgain(e flow.End, call offheap.Call) bool {
	if e.Call.Name != "arena.Recycler.Put" {
		return false
	}
	recycler := flow.KeyOf(e.Call.Recv)
	for _, instr := range flow.Between(e.Instr, call.Instr) {
		between, ok := instr.(ssa.CallInstruction)
		if !ok || offheap.Of(between).Name == "arena.Recycler.Put" {
			continue
		}
		for _, v := range between.Common().Args {
			if flow.KeyOf(v) == recycler {
				return true
			}
		}
	}
	return false
}

// allocators returns the owners that a call needs to be open.
func allocators(call offheap.Call) []ssa.Value {
	switch call.Name {
	case "arena.Recycler.Put":
		return call.Args // the Recycler itself may be closed
	case "":
		value, _ := call.Instr.(*ssa.Call)
		if value == nil {
			return nil
		}
		if block, ok := flow.BlockOf(value); ok && block.From != nil {
			return []ssa.Value{block.From} // by a function of the package
		}
		return nil
	}
	from, _ := call.Allocates()
	end, _ := call.Ends()
	made, _ := call.Makes()
	return append([]ssa.Value{call.Owner(), from, end.To}, made.Parents...)
}

// reports reports whether a call may come after the Close of a parent. A Close may not, except for
// a cache, which ends with its parent.
func reports(call, end offheap.Call) bool {
	if strings.HasSuffix(call.Name, ".Close") && !strings.HasSuffix(call.Name, "Cache.Close") {
		return false
	}
	return call.Name == "epoch.Guard.Leave" || call.WorksAfter(end)
}

// order reports a Close of the owner that is deferred after first and so runs before it.
func (c *checker) order(first flow.End) {
	for _, e := range c.ends {
		if !e.Deferred || !e.Itself || !e.Blocks || !flow.Dominates(first.Instr, e.Instr) {
			continue
		}
		var owners []ssa.Value
		if first.Owner != nil {
			if reports(first.Call, e.Call) {
				continue
			}
			owners = flow.Owners(first.Owner)[1:]
		} else {
			owners = flow.Owners(first.To)
		}
		for _, owner := range owners {
			if flow.IsOne(e.Owner, owner, first.Instr, e.Instr) {
				c.add(e, first.Pos(), "the deferred %s runs after %s, which is deferred at %s",
					c.Text(first.Call.Instr), c.Text(e.Call.Instr), c.Line(e.Pos()))
			}
		}
	}
}

// isCut reports whether a slice is a shorter part of another one, so that Append may find room in
// its block.
func isCut(v ssa.Value) bool {
	s, ok := flow.Value(v).(*ssa.Slice)
	return ok && s.High != nil
}

// fills reports whether a slice is known to have no capacity beyond its length.
func fills(v ssa.Value) bool {
	block, ok := flow.BlockOf(v)
	return ok && block.Call.FillsBlock()
}

func (c *checker) blockName(e flow.End) string { return c.Name(callOf(e), e.Block, "the block") }
func (c *checker) ownerName(e flow.End) string { return c.Name(callOf(e), e.Owner, "the owner") }

// callOf returns the call of an end in the function under analysis.
func callOf(e flow.End) offheap.Call {
	if e.Replaced {
		return e.Call // not Must
	}
	return offheap.Of(e.Instr)
}

// end describes the call of an end and its line.
func (c *checker) end(e flow.End) string {
	return fmt.Sprintf("%s at %s", c.Text(e.Instr), c.Line(e.Pos()))
}
