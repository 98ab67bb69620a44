package profile

import (
	"net/http"
	"strconv"
	"time"

	pb "github.com/google/pprof/profile"
)

// Handler returns a handler that serves the profile of [Write]. Mount it beside net/http/pprof, at
// "GET /debug/pprof/offheap": without the method, the pattern conflicts with pprof's own, and
// Handle panics. With ?seconds=N it waits N seconds, or until the client is gone, and serves the
// difference. A profile tells function names and sizes: do not serve it to strangers.
func Handler() http.Handler {
	return handler("offheap", func() (*pb.Profile, error) { return offHeap(), nil })
}

// ProcessHandler is [Handler] for the profile of [WriteProcess].
func ProcessHandler() http.Handler { return handler("process", process) }

func handler(name string, profile func() (*pb.Profile, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, err := profile()
		if s := r.FormValue("seconds"); s != "" && err == nil {
			seconds, bad := strconv.ParseFloat(s, 64)
			if bad != nil || !(seconds > 0 && seconds <= 3600) {
				http.Error(w, "seconds: want a number up to 3600", http.StatusBadRequest)
				return
			}
			select {
			case <-time.After(time.Duration(seconds * float64(time.Second))):
			case <-r.Context().Done():
				return
			}
			p, err = since(p, profile)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Content-Disposition", `attachment; filename="`+name+`.pb.gz"`)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		_ = p.Write(w) // the client is gone
	})
}

// since returns the difference to an earlier profile.
func since(before *pb.Profile, profile func() (*pb.Profile, error)) (*pb.Profile, error) {
	now, err := profile()
	if err != nil {
		return nil, err
	}
	before.Scale(-1)
	p, err := pb.Merge([]*pb.Profile{before, now})
	if err != nil {
		return nil, err
	}
	p.TimeNanos, p.DurationNanos = now.TimeNanos, now.TimeNanos-before.TimeNanos
	return p, nil
}
