module example.com/user

go 1.25.0

require (
	github.com/VictoriaMetrics/fastcache v1.13.2
	github.com/freehold-go/freehold v0.1.0
)

replace github.com/VictoriaMetrics/fastcache => ..

replace github.com/freehold-go/freehold => ../../..
