// Package process reads the figures of the programs that are measured: processor
// time, physical memory and collections.
package process
