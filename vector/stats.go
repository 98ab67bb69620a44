// Stats: counts of elements and bytes.

package vector

// Stats is a snapshot of a [Vector] or a [Chunked].
type Stats struct {
	Name     string // Options.Name
	Len      int    // elements
	Cap      int    // capacity in elements
	Reserved int    // bytes from the parent
}
