//go:build !(freehold_ranks && amd64)

package lockrank

import "sync"

// Mutex is a sync.Mutex with a rank, which this build ignores.
type Mutex[Rank any] struct{ sync.Mutex }
