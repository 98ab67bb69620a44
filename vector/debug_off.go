//go:build !freehold_debug

package vector

// debug is false in normal builds: the compiler drops the calls of debug_on.go.
const debug = false

func (c *Chunked[T]) mustBeWhole()      {}
func (c *Chunked[T]) fill(_ []T)        {}
func (c *Chunked[T]) mustBeFilled(_ *T) {}
