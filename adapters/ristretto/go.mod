module github.com/freehold-go/freehold/adapters/ristretto

go 1.25.0

require (
	github.com/dgraph-io/ristretto/v2 v2.4.2
	github.com/freehold-go/freehold v0.1.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/dustin/go-humanize v1.0.1 // indirect
	golang.org/x/sys v0.47.0 // indirect
)
