// Errors about records.

package extsort

import (
	"fmt"
	"io"

	"github.com/freehold-go/freehold/internal/arg"
)

// A TooLongError says that a record is too long for the memory of a sort.
type TooLongError struct {
	Source int   // of the record: the index of its source
	Offset int64 // of the record in the source, in bytes
	Max    int   // the most bytes that a record may have, with its key
}

func (e *TooLongError) Error() string {
	return fmt.Sprintf("freehold: extsort: the record at byte %d of source %d is longer than the %s that this much memory allows", e.Offset, e.Source, arg.Bytes(e.Max))
}

// A TruncatedError says that a source ends within a record. It matches
// [io.ErrUnexpectedEOF].
type TruncatedError struct {
	Source int   // of the record: the index of its source
	Offset int64 // of the record in the source, in bytes
	Bytes  int   // that the source has of the record, with its frame
}

func (e *TruncatedError) Error() string {
	return fmt.Sprintf("freehold: extsort: source %d ends within the record at byte %d, of which it has %s", e.Source, e.Offset, arg.Bytes(e.Bytes))
}

// Unwrap returns [io.ErrUnexpectedEOF].
func (e *TruncatedError) Unwrap() error { return io.ErrUnexpectedEOF }

// A DisorderError says which record is not in order.
type DisorderError struct {
	Number int64  // of the record, counted from 1
	Record []byte // without its frame
}

func (e *DisorderError) Error() string {
	return fmt.Sprintf("freehold: extsort: record %d is not in order", e.Number)
}
