// Package extsort sorts more records than memory holds: lines, records of one size, and records
// with their length in front.
//
//	err := extsort.SortFile(ctx, "sorted.txt", nil, "big.txt")
//
// A sort takes Options.MemoryBytes outside of the Go heap and no more, however large the input
// is. If the input does not fit, it goes to temporary files. Where the system allows it they have
// no name, so they are gone when the process ends, even if it is killed. Elsewhere on Unix a file
// has a name for an instant; on Windows it has one until it is closed.
//
//   - [Sort] sorts readers to a writer, [SortFile] files to a file.
//   - [Sorted] is an iterator over the sorted records of readers, [SortedSeq] over the records of
//     another iterator.
//   - [Merge] and [Check] are for input that is sorted already.
//
// # Order
//
// Records are ordered by their bytes, as bytes.Compare does. For text that is the order of the C
// locale, and of code points in UTF-8. For any other order, Options.Key turns a record into a key
// whose bytes have that order: a big-endian number, say, or a field in lower case. Records with
// equal keys keep the order of the input. The result never depends on MemoryBytes or Parallel.
//
// # Cost
//
// A sort takes the record and 16 bytes of memory for each record. Input that does not fit becomes
// sorted runs of about 0.7*MemoryBytes/Parallel bytes. A k-way merge takes about
// MemoryBytes/80 KiB of them at once, or 10 with 1 MiB. So with 256 MiB and two goroutines, input
// of up to about 250 GiB is written to temporary files once and read once; with 1 MiB, input of
// up to 3 MiB. Larger input takes another pass over the temporary files. The command "freehold
// sort" uses this package; docs/figures.md compares it with GNU sort.
package extsort

// The story of a sort, from its inputs to its output:
//
//	read    inputs --> regions, one for each worker
//	sort    each region
//	write   regions --> runs in temporary files, unless all input fits in the regions
//	reduce  runs --> fewer and longer runs, if there are too many to merge at once
//	merge   runs --> output, in parts that are merged concurrently, or record by record
//
// A file calls only files in the rows below its own:
//
//	extsort.go   Sort, SortFile, Sorted and SortedSeq: inputs in any order
//	sorted.go    Merge and Check: inputs that are sorted
//	worker.go    inputs --> runs              merge.go  runs --> output, in parts
//	region.go    memory full of records       reduce.go runs --> fewer runs
//	input.go     one source                   tree.go   k-way merge by a loser tree
//	job.go       options, memory, files and runs of one sort
//	run.go       sorted records, how they are written and read
//	index.go     where a run has which records
//	writer.go    bytes, written in blocks
//	plan.go      the division of the memory
//	progress.go  reports
//	format.go    the form and the order of records
//
// The files of internal/file (spill, atomicfile, lazyfile) do the system calls, and
// internal/keysort sorts entries.
