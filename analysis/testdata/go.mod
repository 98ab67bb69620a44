module freehold.test

go 1.25.0

require (
	github.com/freehold-go/freehold v0.1.0
	golang.org/x/sys v0.47.0
)

replace github.com/freehold-go/freehold => ../..
