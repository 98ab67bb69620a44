// Package limits is a tree of limits. It knows how many bytes each node and those below it use, how
// many they may use, and the level of each node.
//
//	process  1 GiB         used of a node = its own charges + used of the nodes below
//	+- search  600 MiB
//	|  +- tenant a  400 MiB
//	|  +- tenant b  400 MiB
//	+- ingest  200 MiB
//
//	tree.go     nodes, their names and their parents
//	charge.go   charges, refunds, refusals and limits
//	state.go    the limits that hold, and the state of a node after each change
//
// Each file calls only files below it in this list. The package knows neither heaps nor budgets: a
// node tells its Watcher of its state. It starts no goroutine or timer, and frees nothing.
package limits
