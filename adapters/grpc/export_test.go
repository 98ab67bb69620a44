package grpc

// DropStale is a cleanup that comes late: b's address was returned, and b has it now.
func (p *Pool) DropStale(b []byte) { p.dropped(&lease{block: b}) }
