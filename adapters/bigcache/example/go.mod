module example.com/user

go 1.25.0

require (
	github.com/allegro/bigcache/v3 v3.1.0
	github.com/freehold-go/freehold v0.1.0
)

replace github.com/allegro/bigcache/v3 => ..

replace github.com/freehold-go/freehold => ../../..
