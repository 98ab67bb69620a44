module github.com/freehold-go/freehold/examples/debugging

go 1.25.0

require (
	github.com/chromedp/cdproto v0.159.0
	github.com/chromedp/chromedp v0.23.0
	github.com/freehold-go/freehold v0.1.0
	github.com/freehold-go/freehold/profile v0.1.0
)

require (
	github.com/go-json-experiment/json v0.0.0-20260213210345-44df1a37e875 // indirect
	github.com/google/pprof v0.0.0-20260906184651-6331bc6350fe // indirect
	golang.org/x/sys v0.47.0 // indirect
)
