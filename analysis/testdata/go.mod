module freehold.test

go 1.26.0

require (
	github.com/freehold-go/freehold v0.1.0
	golang.org/x/sys v0.49.0
)

replace github.com/freehold-go/freehold => ../..
