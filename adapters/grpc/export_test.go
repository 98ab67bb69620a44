package grpc

// DropStale is a cleanup that comes late: b's address was returned, and b has it now.
func (p *Pool) DropStale(b []byte) { p.dropped(&lease{block: b}) }

// AtPut has Put call f before it ends the lease, and returns what ends that.
func AtPut(f func()) (end func()) {
	atPut = f
	return func() { atPut = nil }
}
