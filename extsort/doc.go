// Package extsort sorts more records than memory holds: lines, records of one
// size, and records that follow their length.
//
//	err := extsort.SortFile(ctx, "sorted.txt", nil, "big.txt")
//
// A sort takes Options.Memory bytes outside of the Go heap and not more, however
// large the input is. What does not fit goes to temporary files. They have no name
// where the system allows that, and so are gone when the process ends, however it
// ends. (Elsewhere on Unix a file has a name for an instant, and on Windows until
// it is closed.)
//
//   - [Sort] sorts readers to a writer, [SortFile] files to a file.
//   - [Records] is an iterator over the sorted records.
//   - [Merge] and [Check] are for input that is sorted already.
//
// # Order
//
// Records are ordered by their bytes, as bytes.Compare does: for text that is the
// order of the C locale, and of code points in UTF-8. For any other order,
// Options.Key turns a record into a key whose bytes have it: a big-endian number,
// say, or a field in lower case. Records with equal keys keep the order of the
// input. The result never depends on Memory or Parallel.
//
// # Cost
//
// Sorting takes 16 bytes of memory for each record beside the record itself. With
// memory for a hundredth of the input or more, each record is written to a
// temporary file once and read once; below that, twice. The command "freehold
// sort" is made of this package; the README compares it with GNU sort.
package extsort
