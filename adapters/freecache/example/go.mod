module example.com/user

go 1.25.0

require (
	github.com/coocood/freecache v1.2.7
	github.com/freehold-go/freehold v0.1.0
)

replace github.com/coocood/freecache => ..

replace github.com/freehold-go/freehold => ../../..
