module github.com/freehold-go/freehold/adapters/fastcache

go 1.25.0

require (
	github.com/VictoriaMetrics/fastcache v1.13.2
	github.com/freehold-go/freehold v0.1.0
)

require golang.org/x/sys v0.47.0 // indirect
