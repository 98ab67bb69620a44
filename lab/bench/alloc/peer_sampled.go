// Peer: freehold's Heap while blocks are sampled for a profile.

//go:build peer_sampled

package alloc

import (
	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/track"
)

const peer = "freehold-sampled"

var heap = freehold.NewHeap(nil)

func init() { track.SetSampleRate(track.DefaultSampleRate) }
