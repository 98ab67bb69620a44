module github.com/freehold-go/freehold/adapters/wazero

go 1.25.0

require (
	github.com/freehold-go/freehold v0.1.0
	github.com/tetratelabs/wazero v1.12.0
)

require golang.org/x/sys v0.47.0 // indirect
