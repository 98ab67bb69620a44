// Package budget keeps a process within one memory limit: Go's heap and off-heap memory
// together.
//
// GOMEMLIMIT does not count off-heap memory. A program that keeps gigabytes there is killed
// by its container while the collector believes that there is room. And once the large data
// has left Go's heap, what remains is so small that the collector runs all the time: its goal
// is twice the live bytes, and little memory is used up soon.
//
//	b, err := budget.Start(nil)
//	if err != nil {
//		return err
//	}
//	defer b.Stop()
//
// [Start] finds the process's limit: [Options].Limit, else the variable FREEHOLD_MEMORY_LIMIT,
// else the tightest limit of its cgroups, else three quarters of physical memory. From then on
// Go's memory limit is what off-heap memory and others leave of it, and GOGC lets Go's heap grow
// to that, or to four tenths of the limit if a heap of that size is ample for what is live. The
// collector runs then and not before. [Options].GoHeap makes it run earlier or later.
//
// Where the limit is a part of physical memory, nothing says that the memory is the process's. So
// the collector keeps its own pace there, but that it lets Go's heap grow to 64 MiB: a process
// with little on Go's heap does not collect all the time, and none takes more memory than it
// needs. Near the limit Go's memory limit makes it collect earlier, as elsewhere.
//
// Package [github.com/freehold-go/freehold/budget/auto] starts a budget when it is imported.
//
// A limit for Go is a request: a program with more live data than it takes no notice. A Budget
// refuses no block either; limits do that, as HeapOptions.MaxBytes, freehold.Limit and an
// [Account]. [Stats].Short tells that the sum may pass the limit.
//
// An [Account] is a heap with a limit below those of others: a tenant's within a subsystem's
// within the process's. Accounts work without a Budget as well. Those below [Budget.Account] are
// refused what the process's limit has no room for.
//
// A library should not start a budget: there is one in a process, and it belongs to main.
package budget
