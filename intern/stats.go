// Stats: counts of strings and bytes.

package intern

// Stats is a snapshot of [Strings] or [Shared].
type Stats struct {
	Name      string // Options.Name
	Len       int    // strings
	LiveBytes int    // in the strings
	IDs       int    // the most strings at any time so far; every ID is less than it
	Reserved  int    // bytes from the parent
}

// Stats returns the figures. It costs a few loads.
func (s *Strings) Stats() Stats { return s.store.stats(s.base.Name) }

func (s *store) stats(name string) Stats {
	return Stats{
		Name:      name,
		Len:       s.live(),
		LiveBytes: s.bytes,
		IDs:       int(s.ids.Load()),
		Reserved:  int(s.reserved.Load()),
	}
}
