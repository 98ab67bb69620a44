module example.com/user

go 1.25.0

require (
	github.com/freehold-go/freehold v0.1.0
	modernc.org/libc v1.76.0
	modernc.org/memory v1.12.1
)

replace modernc.org/memory => ..

replace github.com/freehold-go/freehold => ../../..
