// Package useafterfree defines an analyzer that reports off-heap memory which is
// used after it has ended.
package useafterfree

import (
	"cmp"
	"fmt"
	"go/token"
	"slices"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/buildssa"
	"golang.org/x/tools/go/ssa"

	"github.com/freehold-go/freehold/analysis/internal/flow"
	"github.com/freehold-go/freehold/analysis/internal/offheap"
	"github.com/freehold-go/freehold/analysis/internal/source"
)

const doc = `report off-heap memory that is used after it has ended

A block ends with its Free, with a successful Realloc, Resize, Append or Grow of
it, and with Reset, Rewind or Close of its arena, pool or heap:

	freehold.FreeSlice(heap, xs)
	return xs[0]

Reported are uses that only come after that: reads, writes, second frees, and
calls of an owner that is closed. A free in one branch is not, nor one in another
function, unless that is of the same package and always frees its argument.
Reported too are frees that are deferred twice, or run after the deferred Close of
the owner. Asking for the length or the address of a freed block is no use.

Not followed: blocks in elements of slices and maps, fields and shared variables
that a call in between may assign, Reset of an arena.Shared, which guards delay.`

// Analyzer reports uses of off-heap memory after its end.
var Analyzer = &analysis.Analyzer{
	Name:     "useafterfree",
	Doc:      doc,
	URL:      "https://pkg.go.dev/github.com/freehold-go/freehold/analysis/useafterfree",
	Requires: []*analysis.Analyzer{buildssa.Analyzer},
	Run:      run,
}

func run(pass *analysis.Pass) (any, error) {
	calls := source.Of(pass)
	for _, fn := range flow.Functions(pass) {
		c := checker{Pass: pass, calls: calls, ends: flow.Ends(fn)}
		if len(c.ends) > 0 {
			c.check(fn)
		}
	}
	return nil, nil
}

type checker struct {
	*analysis.Pass
	calls source.Calls
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
	for i := range c.ends {
		if c.ends[i].Block != nil && !c.ends[i].Replaced {
			c.secondFree(c.ends[i])
		}
		if c.ends[i].Deferred {
			c.order(c.ends[i])
		}
	}
	slices.SortStableFunc(c.found, func(a, b finding) int { return cmp.Compare(a.pos, b.pos) })
	reported := map[any]bool{} // ends and places: of each the first use, at each one end
	for _, f := range c.found {
		if !reported[f.end.Instr] && !reported[f.pos] {
			reported[f.end.Instr], reported[f.pos] = true, true
			c.Report(analysis.Diagnostic{Pos: f.pos, Message: f.msg, Related: []analysis.RelatedInformation{{
				Pos: f.end.Pos(), Message: "it ended here",
			}}})
		}
	}
}

func (c *checker) add(e flow.End, pos token.Pos, format string, args ...any) {
	if pos.IsValid() {
		c.found = append(c.found, finding{e, pos, fmt.Sprintf(format, args...)})
	}
}

// use looks for an end before a use of memory.
func (c *checker) use(instr ssa.Instruction, use flow.Use) {
	base := flow.Base(use.Value)
	for _, e := range c.ends {
		if e.Retired || !e.Before(instr) {
			continue
		}
		if c.isBlock(e, base, instr) && !(e.Call.Keeps() && !fills(base)) {
			c.add(e, posOf(instr, use), "%s is %s after %s", c.blockName(e), use.How, c.end(e))
		} else if c.isBlockOf(e, base, instr) {
			c.add(e, posOf(instr, use), "a block of %s is %s after %s, which ended it", c.ownerName(e), use.How, c.end(e))
		}
	}
}

// secondFree looks for an end before that of the same block.
func (c *checker) secondFree(second flow.End) {
	base := flow.Base(second.Block)
	for _, e := range c.ends {
		if e.Instr == second.Instr {
			continue
		}
		switch {
		case e.Before(second.Instr) && c.isBlock(e, base, second.Instr):
			if e.Replaced {
				c.add(e, second.Pos(), "%s is freed after %s, which replaced it", c.blockName(e), c.end(e))
			} else {
				c.add(e, second.Pos(), "%s is freed twice: before by %s", c.blockName(second), c.end(e))
			}
		case e.Before(second.Instr) && c.isBlockOf(e, base, second.Instr):
			c.add(e, second.Pos(), "a block of %s is freed after %s, which ended it", c.ownerName(e), c.end(e))
		case second.Deferred && !e.Deferred && flow.Dominates(second.Instr, e.Instr) && c.isBlock(e, base, e.Instr):
			verb := "freed"
			if e.Replaced {
				verb = "replaced"
			}
			c.add(e, e.Pos(), "%s is %s here, and freed again by the deferred %s at %s",
				c.blockName(e), verb, c.calls.Text(second.Call.Instr), c.calls.Line(second.Pos()))
		}
	}
}

// owner looks for an end of the owner that a call is about, and of its parents.
func (c *checker) owner(call offheap.Call) {
	if block, _, ok := call.Frees(); ok && isNil(block) {
		return
	}
	for _, v := range allocators(call) {
		for i, owner := range flow.Owners(v) {
			for _, e := range c.ends {
				if !e.Itself || !e.Before(call.Instr) || !c.same(e.Owner, owner, e.Instr, call.Instr) {
					continue
				}
				if i == 0 && !call.WorksAfter(e.Call) && !c.gotAgain(e, call) ||
					i > 0 && e.Blocks && !reports(call, e.Call) {
					c.add(e, call.Instr.Common().Pos(), "%s after %s", c.calls.Text(call.Instr), c.end(e))
				}
			}
		}
	}
}

func isNil(v ssa.Value) bool {
	c, ok := flow.Value(v).(*ssa.Const)
	return ok && c.IsNil()
}

// gotAgain reports whether an arena that was put into a Recycler may have come out
// of that again before a call.
func (c *checker) gotAgain(e flow.End, call offheap.Call) bool {
	if e.Call.Name != "arena.Recycler.Put" {
		return false
	}
	recycler := flow.KeyOf(e.Call.Recv)
	for instr := range flow.Between(e.Instr, call.Instr) {
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

// allocators returns the owners that a call needs alive.
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
	var all []ssa.Value
	if call.Recv != nil {
		all = append(all, call.Recv)
	}
	if from, ok := call.Allocates(); ok && from != call.Recv {
		all = append(all, from)
	}
	if _, to, ok := call.Frees(); ok && to != call.Recv {
		all = append(all, to)
	}
	if owner, ok := call.Makes(); ok {
		for _, p := range owner.Parents {
			if p != call.Recv {
				all = append(all, p)
			}
		}
	}
	return all
}

// reports reports whether a call may come after the Close of a parent. Close may
// not, unless it is that of a cache, which ends with its parent.
func reports(call, end offheap.Call) bool {
	switch call.Name {
	case "arena.Arena.Close", "arena.Shared.Close", "pool.Pool.Close", "pool.Blocks.Close", "buffer.Buffer.Close", "arena.Recycler.Close",
		"hashmap.Map.Close", "hashmap.Shared.Close", "btree.Map.Close", "intern.Strings.Close", "intern.Shared.Close",
		"vector.Vector.Close", "vector.Chunked.Close":
		return false
	case "epoch.Guard.Leave":
		return true
	}
	return call.WorksAfter(end)
}

// order looks for a Close that is deferred later and so runs before.
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
			if c.same(e.Owner, owner, first.Instr, e.Instr) {
				c.add(e, first.Pos(), "the deferred %s runs after %s, which is deferred at %s",
					c.calls.Text(first.Call.Instr), c.calls.Text(e.Call.Instr), c.calls.Line(e.Pos()))
			}
		}
	}
}

// isBlock reports whether e is the end of the block that base is, at instr.
func (c *checker) isBlock(e flow.End, base ssa.Value, instr ssa.Instruction) bool {
	return e.Block != nil && c.same(flow.Base(e.Block), base, e.Instr, instr)
}

// isBlockOf reports whether e ends all blocks of an allocator, and base is one.
func (c *checker) isBlockOf(e flow.End, base ssa.Value, instr ssa.Instruction) bool {
	if !e.Blocks {
		return false
	}
	block, ok := flow.BlockOf(base)
	if !ok || !flow.Dominates(block.Instr, e.Instr) {
		return false
	}
	if e.Since != nil {
		mark, ok := flow.Value(e.Since).(*ssa.Call)
		if !ok || !flow.Dominates(mark, block.Instr) {
			return false
		}
	}
	for _, owner := range flow.Owners(block.From) {
		if c.same(e.Owner, owner, block.Instr, instr) {
			return true
		}
	}
	return false
}

// same reports whether two values are one, from one instruction to another.
func (c *checker) same(a, b ssa.Value, from, to ssa.Instruction) bool {
	k := flow.KeyOf(a)
	return k == flow.KeyOf(b) && k.Stable(from, to)
}

// fills reports whether a slice is known to have no capacity beyond its length.
func fills(v ssa.Value) bool {
	block, ok := flow.BlockOf(v)
	return ok && block.Call.FillsBlock()
}

func (c *checker) blockName(e flow.End) string { return c.calls.Name(callOf(e), e.Block, "the block") }
func (c *checker) ownerName(e flow.End) string { return c.calls.Name(callOf(e), e.Owner, "the owner") }

// callOf returns the call that an end is in its own function.
func callOf(e flow.End) offheap.Call {
	if e.Replaced {
		return e.Call // and not Must
	}
	return offheap.Of(e.Instr.(ssa.CallInstruction))
}

// end says which call is an end, and where.
func (c *checker) end(e flow.End) string {
	return fmt.Sprintf("%s at %s", c.calls.Text(e.Instr.(ssa.CallInstruction)), c.calls.Line(e.Pos()))
}

// posOf returns the place of a use, or the nearest that has one.
func posOf(instr ssa.Instruction, use flow.Use) token.Pos {
	if closure, ok := instr.(*ssa.MakeClosure); ok {
		return closure.Fn.Pos()
	}
	if pos := instr.Pos(); pos.IsValid() {
		return pos
	}
	return use.Value.Pos()
}
