package profile_test

import (
	"fmt"
	"net/http"
	_ "net/http/pprof"
	"os"

	"github.com/freehold-go/freehold/profile"
)

// The handler goes beside Go's own profiles of net/http/pprof.
func ExampleHandler() {
	http.Handle("GET /debug/pprof/offheap", profile.Handler())
	http.Handle("GET /debug/pprof/process", profile.ProcessHandler())
}

func ExampleWrite() {
	f, err := os.Create("offheap.pb.gz") // for go tool pprof offheap.pb.gz
	if err != nil {
		fmt.Println(err)
		return
	}
	defer f.Close()
	if err := profile.Write(f); err != nil {
		fmt.Println(err)
	}
}
