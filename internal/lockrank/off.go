//go:build !(freehold_ranks && amd64)

package lockrank

import "sync"

// Mutex is a sync.Mutex of a rank.
type Mutex[Rank any] struct{ sync.Mutex }
