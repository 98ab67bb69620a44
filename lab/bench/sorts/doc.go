// Package sorts has the benchmarks of sorting: records in memory, the buffers that they are in,
// and lines from file to file.
//
// A load here takes tenths of a second or more, so the peers are called through interfaces. Input
// is made before the time begins and the result is verified after it ends.
package sorts
