package load

import (
	"context"
	"fmt"
	"time"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"github.com/freehold-go/freehold/internal/sysmem"
	"github.com/freehold-go/freehold/lab/process"
)

// A shortageError says that a run was stopped for lack of memory.
type shortageError struct{ available, reserve int64 }

func (e shortageError) Error() string {
	return fmt.Sprintf("only %s of memory was left, and %s are to stay available", cli.Bytes(e.available), cli.Bytes(e.reserve))
}

// watchMemory returns a context that is done, with a shortageError as its cause, once
// less than reserve bytes of memory are available.
func watchMemory(ctx context.Context, reserve int64) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := process.Every(10*time.Millisecond, func() {
		if total, available := sysmem.Memory(); total > 0 && available < reserve {
			cancel(shortageError{available, reserve})
		}
	})
	return ctx, func() {
		stop()
		cancel(nil)
	}
}
