package grpc

// DropStale runs a late cleanup of an earlier buffer at b's address.
func (p *Pool) DropStale(b []byte) { p.dropped(&lease{block: b}) }

// AtPut makes Put call f before it ends the lease. end undoes that.
func AtPut(f func()) (end func()) {
	atPut = f
	return func() { atPut = nil }
}
