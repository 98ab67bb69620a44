//go:build !amd64 || race || freehold_portable

package arena

func fastAlloc(s *Shared, size, align int) ([]byte, error)  { return s.alloc(size, align) }
func fastZeroed(s *Shared, size, align int) ([]byte, error) { return s.zero(size, align) }
