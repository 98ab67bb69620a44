module github.com/freehold-go/freehold/adapters/memory

go 1.25.0

require (
	github.com/freehold-go/freehold v0.1.0
	modernc.org/memory v1.12.1
)

require golang.org/x/sys v0.47.0 // indirect
