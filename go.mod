module github.com/freehold-go/freehold

go 1.26.0

require golang.org/x/sys v0.49.0
