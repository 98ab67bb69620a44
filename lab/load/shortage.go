package load

import (
	"context"
	"fmt"
	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"time"

	"github.com/freehold-go/freehold/budget"
)

// A shortageError says that a run was stopped for lack of memory.
type shortageError struct{ available, reserve int64 }

func (e shortageError) Error() string {
	return fmt.Sprintf("only %s of memory was left, and %s are to stay available", cli.Bytes(e.available), cli.Bytes(e.reserve))
}

// onShortage is called after a shortage has ended a context, for tests; nil otherwise.
var onShortage func()

// watchMemory returns a context that is done, with a shortageError as its cause, once
// less than reserve bytes of memory are available.
func watchMemory(ctx context.Context, reserve int64) (context.Context, context.CancelFunc) {
	const every = 10 * time.Millisecond
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			if total, available := budget.Memory(); total > 0 && available < reserve {
				cancel(shortageError{available, reserve})
				if onShortage != nil {
					onShortage()
				}
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}()
	return ctx, func() { cancel(nil) }
}
