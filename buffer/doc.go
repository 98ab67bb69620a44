// Package buffer keeps a growing sequence of bytes outside of the Go heap: in blocks of any
// [freehold.Allocator], in a temporary file beyond a given size, or in a file that outlives the
// process.
//
//	buf := buffer.New(freehold.Default(), &buffer.Options{SpillAfter: 1 << 30})
//	defer buf.Close()
//	fmt.Fprintf(buf, "hello, %s\n", name)
//
// A [Buffer] is read as a []byte and written by appending, whatever its memory is. To grow a
// large buffer, its pages are moved instead of copied, where the allocator or the system can.
// [Over] makes a Buffer of a slice of the caller.
//
// # Records
//
// [Records] is a sequence of byte strings in a buffer. All have the same size, or each has its
// own. It sorts them in place, on all processors, with half of their size as extra memory:
//
//	records, err := buffer.NewRecords(buf, nil)
//	err = records.AppendBytes(line)
//	err = records.SortBy(ctx, nil, nil)
//	for offset, line := range records.All() {
//
// # Slices into a buffer
//
// Bytes and Extend return slices of the buffer's memory. They are valid until the
// next call that may grow, trim or close the buffer. A slice used after that may
// read other data, corrupt it, or crash the program.
//
// # Files
//
// A temporary file is gone when the buffer is closed and when the process ends,
// however it ends. On Linux it never has a name. Elsewhere, and on file systems
// without O_TMPFILE, its name is removed at once; a kill in that instant leaves an
// empty file. Windows removes the file when its handle is closed. [Open] keeps a
// buffer in a file that has a name.
//
// Disk space is allocated before it is mapped, so a full disk is an error of the call that grows
// the buffer. Three things can still go wrong later, when memory is accessed:
//
//   - another process truncates the file;
//   - the disk fails;
//   - the disk is full, and a write needs space that could not be allocated before. File systems
//     that copy on write (btrfs, ZFS, APFS) may need space for each write. On Windows and macOS,
//     a copy of a file of Open may have holes without space.
//
// The access then faults, which ends a Go program. All methods turn the fault into an error, and
// so does [Buffer.Guard] for the function that it calls.
package buffer
