// Signals: how a cache server stops, and when it reads certificates and users again.

package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
)

// untilSignal returns a context that is done when ctx is, or at the first signal. A second signal
// only logs that the server is stopping, so that it does not lose the snapshot. The third ends the
// process. SIGHUP only runs reload, unless that is nil.
func untilSignal(ctx context.Context, log *log.Logger, reload func()) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	signals, hangups := make(chan os.Signal, 3), make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	endings := []os.Signal{os.Interrupt, syscall.SIGHUP}
	if reload != nil {
		endings = endings[:1]
		signal.Notify(hangups, syscall.SIGHUP)
	}
	for _, sig := range endings {
		// Scripts ignore SIGINT for commands in the background, and nohup ignores SIGHUP.
		if !signal.Ignored(sig) {
			signal.Notify(signals, sig)
		}
	}
	ended := make(chan struct{})
	go func() {
		for n := 1; ; n++ {
			select {
			case <-ended:
				return
			case <-hangups:
				reload()
				n--
				continue
			case <-signals:
			}
			switch n {
			case 1:
				cancel()
			case 2:
				log.Print("stopping, and writing the snapshot if there is one; another signal ends this at once, and the old snapshot stays")
			default:
				os.Exit(cli.Interrupted)
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		signal.Stop(hangups)
		close(ended)
		cancel()
	}
}
