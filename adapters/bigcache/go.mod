module github.com/freehold-go/freehold/adapters/bigcache

go 1.25.0

require (
	github.com/allegro/bigcache/v3 v3.1.0
	github.com/freehold-go/freehold v0.1.0
)

require golang.org/x/sys v0.47.0 // indirect
