//go:build !amd64 || race || freehold_portable || asan

package arena

var fast functions

type functions struct{}

func (functions) alloc(s *Shared, size, align int) ([]byte, error)  { return s.alloc(size, align) }
func (functions) zeroed(s *Shared, size, align int) ([]byte, error) { return s.zero(size, align) }
