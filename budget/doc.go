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
// on Go's memory limit is the part of it that off-heap memory and others leave. GOGC lets Go's
// heap grow to that, but no further than four tenths of the limit, or sixteen times the live
// bytes if that is more. The collector runs then and not before. [Options].GoHeap makes it run
// earlier or later.
//
// If the limit is a part of physical memory, nothing says that this memory is the process's. So
// the collector keeps its own pace there, except that Go's heap may always grow to 64 MiB: a
// process with little on Go's heap does not collect all the time, and none takes more memory than
// it needs. Near the limit Go's memory limit makes the collector run earlier, as elsewhere.
//
// Package [github.com/freehold-go/freehold/budget/auto] starts a budget when it is imported.
//
// A limit for Go is a request: a program with more live data ignores it. A Budget refuses no
// block either. HeapOptions.MaxBytes, freehold.Limit and an [Account] do. [Stats].Short tells
// when the sum may exceed the limit.
//
// An [Account] is a heap with a limit within the limits of others, as a tenant's within a
// subsystem's within the process's. Accounts work without a Budget as well. Accounts below
// [Budget.Account] are refused blocks for which the process's limit has no room.
//
// A library should not start a budget: there is one in a process, and it belongs to main.
package budget

// The files, from top to bottom. Each calls only files below it, except by an interface or a
// function that it is given.
//
//	budget.go                      Start, Stop, and the parts of a Budget
//	wait.go, round.go, relief.go   work that ticks: waits, callbacks, room for an account
//	tick.go                        the figures, and what follows from them; locks Budget.mu
//	stats.go, log.go               the figures for users
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
//	internal/limits                the tree of limits; a lock for each tree
//	internal/pressure              the limit, the system's figures, levels
//
// A Budget calls accounts: it makes the process's account and sets its limit. Accounts know the
// Budget as a leader (payer.go). The order of the locks is in internal/lockrank: Relief, then
// Budget, then the heaps', then the tree's, then leaves.
