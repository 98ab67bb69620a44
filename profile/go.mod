module github.com/freehold-go/freehold/profile

go 1.25.0

require (
	github.com/freehold-go/freehold v0.1.0
	github.com/google/pprof v0.0.0-20260906184651-6331bc6350fe
)

require golang.org/x/sys v0.47.0 // indirect
