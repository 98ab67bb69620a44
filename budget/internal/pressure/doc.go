// Package pressure finds the process's memory limit, reads how much of it is used, and decides how
// short memory is. Package budget acts on that.
//
//	watch.go    a Watch reads the files when they are due, and keeps the last figures
//	limit.go    the limit: an option, the environment, cgroups, physical memory
//	signal.go   the kernel's signals: stalls for memory, and events of a cgroup
//	level.go    the level for bytes used and limits
//	size.go     sizes as text
//	clock.go    times in and out of a testing/synctest bubble
//
// Watch calls the files below it, and those call only level.go to clock.go. The package starts no
// goroutine or timer, takes no lock, sets nothing, and knows no heap or account. Its caller
// guards a Watch.
package pressure
