// Package limits bounds what C allocates. Its init comes before modernc.org/libc's, whose path
// sorts behind.
package limits

import "modernc.org/memory"

func init() { memory.Options.MaxBytes = 16 << 20 }
