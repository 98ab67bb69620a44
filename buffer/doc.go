// Package buffer keeps a growing sequence of bytes outside of the Go heap: in
// blocks of any [freehold.Allocator], in a temporary file beyond a given size, or
// in a file that outlives the process.
//
//	buf := buffer.New(freehold.Default(), &buffer.Options{SpillAfter: 1 << 30})
//	defer buf.Close()
//	fmt.Fprintf(buf, "hello, %s\n", name)
//
// A [Buffer] is a []byte to read and an append to write, whatever its memory is.
// Growing moves the pages of a large buffer instead of copying them, where the
// allocator or the system can. [Over] makes a Buffer of a slice that the caller has.
//
// # Records
//
// [Records] is a sequence of byte strings in a buffer, each of its own size or all of
// one. It sorts them in place, on all processors, with half of their size as extra
// memory:
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
// Disk space is allocated before it is mapped, so a full disk is an error of the
// call that grows the buffer. Three things can still go wrong later, when memory is
// accessed: somebody truncates the file; the disk fails; or the disk is full, and a
// write needs space that could not be allocated before. File systems that copy on
// write (btrfs, ZFS, APFS) may need space for each write. On Windows and macOS, a copy
// of a file of Open may have holes without space. Such an access faults, which ends a
// Go program. All methods, and what is called by [Buffer.Guard], turn the fault into
// an error.
package buffer
