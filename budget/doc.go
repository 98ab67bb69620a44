// Package budget keeps a process within one memory limit: Go's heap and off-heap memory together.
//
// GOMEMLIMIT does not count off-heap memory. A program that keeps gigabytes there is killed by
// its container while the collector believes that there is room. And once the large data has left
// Go's heap, the rest is so small that the collector runs all the time: its goal is twice the
// live bytes, and the program soon allocates that much.
//
//	b, err := budget.Start(nil)
//	if err != nil {
//		return err
//	}
//	defer b.Stop()
//
// [Start] finds the process's limit: [Options].Limit, or else the variable FREEHOLD_MEMORY_LIMIT,
// or else the tightest limit of its cgroups, or else three quarters of physical memory. From then
// on Go's memory limit is this limit less a headroom, off-heap memory and the memory of others,
// such as C libraries. GOGC lets Go's heap grow to a goal: four tenths of the process's limit, or
// sixteen times the live bytes if that is more, but never more than Go's memory limit. The
// collector runs when the heap has reached the goal. [Options].GoHeap sets another goal.
//
// If the limit is three quarters of physical memory, other processes may need this memory too. So
// the collector keeps its own pace then, except that Go's heap may always grow to 64 MiB. So a
// process with little on Go's heap does not collect all the time. Near the limit, Go's memory limit
// makes the collector run earlier, as with any other limit.
//
// Package [github.com/freehold-go/freehold/budget/auto] starts a budget when it is imported.
//
// Go exceeds its memory limit when the live data needs more. A Budget refuses no block.
// HeapOptions.MaxBytes, freehold.Limit and an [Account] refuse blocks. [Stats].Short is above 0
// when the sum of all memory may exceed the limit.
//
// An [Account] is a heap with a limit within the limits of the accounts above it: a tenant within a
// subsystem within the process. Accounts work without a Budget as well. An account below
// [Budget.Account] also refuses blocks for which the process's limit has no room.
//
// A library should not start a budget: there is one in a process, and it belongs to main.
package budget

// The files, from top to bottom. Each calls only files below it, except by an interface or a
// function that it is given.
//
//	budget.go                      Start, Stop, and the parts of a Budget
//	wait.go, round.go, relief.go   callers of ticks: waits, callbacks, room for an account
//	tick.go                        the figures, and what follows from them; locks Budget.mu
//	log.go, stats.go               the figures for users
//	settings.go, reclaim.go,       parts of a Budget, each with state that only its file changes
//	growth.go, alarm.go
//	step.go, collector.go          Go's settings as a function of the figures; the runtime
//
//	account.go, evict.go           the calls of an Account
//	crossing.go                    its rounds and lines when it is short of memory
//	accountstats.go                its figures
//	payer.go                       its heap's charges, and room before a refusal
//
//	turns.go, callback.go          timers without goroutines; functions of OnPressure
//	reported.go                    the levels that these functions and a Logger know
//	options.go, level.go           names for users
//	internal/limits                the tree of limits; a lock for each tree
//	internal/pressure              the limit, the system's figures, levels
//
// A Budget calls accounts: it makes the process's account and sets its limit. The process's account
// calls the Budget through the interface leader (payer.go). The order of the locks is in
// internal/lockrank: Relief, then Budget, then the heaps', then the tree's, then leaves.
