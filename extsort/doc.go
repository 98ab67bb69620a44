// Package extsort sorts more records than memory holds: lines, records of one
// size, and records that follow their length.
//
//	err := extsort.SortFile(ctx, "sorted.txt", nil, "big.txt")
//
// A sort takes Options.MemoryBytes outside of the Go heap and not more, however
// large the input is. What does not fit goes to temporary files. They have no name
// where the system allows that, and so are gone when the process ends, however it
// ends. (Elsewhere on Unix a file has a name for an instant, and on Windows until
// it is closed.)
//
//   - [Sort] sorts readers to a writer, [SortFile] files to a file.
//   - [Sorted] is an iterator over the sorted records of readers, [SortedSeq] over
//     those of another iterator.
//   - [Merge] and [Check] are for input that is sorted already.
//
// # Order
//
// Records are ordered by their bytes, as bytes.Compare does: for text that is the
// order of the C locale, and of code points in UTF-8. For any other order,
// Options.Key turns a record into a key whose bytes have it: a big-endian number,
// say, or a field in lower case. Records with equal keys keep the order of the
// input. The result never depends on MemoryBytes or Parallel.
//
// # Cost
//
// Sorting takes 16 bytes of memory for each record beside the record itself. Input
// that does not fit becomes sorted runs of about 0.7*MemoryBytes/Parallel bytes. About
// MemoryBytes/80 KiB of them are merged at a time, but 10 with 1 MiB. So with 256 MiB
// and two goroutines, input of up to about 250 GiB is written to temporary files once
// and read once; with 1 MiB, input of up to 3 MiB. More takes another pass over the
// temporary files. The command "freehold sort" is made of this package;
// docs/figures.md compares it with GNU sort.
package extsort
