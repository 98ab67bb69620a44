module github.com/freehold-go/freehold/adapters/freecache

go 1.25.0

require (
	github.com/coocood/freecache v1.2.7
	github.com/freehold-go/freehold v0.1.0
)

require golang.org/x/sys v0.47.0 // indirect
