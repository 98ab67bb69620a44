// Package process reads what the programs that are measured have used: processor
// time, physical memory and collections.
package process
