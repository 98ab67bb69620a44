// Choose: which blocks are watched.
//
// There are three settings: one byte in rate is sampled, one block in n is guarded, and blocks
// get red zones or not. One countdown serves all of them. A cache counts down the bytes that
// Alloc takes from it, from a random start (Gap). A block at which the countdown ends is an
// event, and choose draws what happens to it:
//
//	|<-------------- probability of an event -------------->|
//	|  guarded, 1/n   |  sampled only  |  neither: it gets  |
//	|  (some sampled) |                |  a red zone, or is |
//	|                 |                |  not watched       |
//
// Sampled: of the bytes that a heap hands out, about one in rate is picked, and its block is
// sampled. A block of size bytes is sampled with probability 1-exp(-size/rate), independent of all
// others. So a sample represents 1/probability blocks, and the sums are right on average, as in
// tcmalloc and in Go's memory profile.
//
// Guarded: one block in n, whatever its size, independent of samples. So each block counts extra
// bytes besides its own. They make the probability of an event at least the probability of a block
// that is sampled, guarded or both. With red zones every block is an event.
//
// In assembly the countdown has functions of its own, which are in use while anything is counted:
// see fast_amd64.go of package heap. A block that no cache has served gets a gap of its own
// (Due), with the same distribution.

package watch

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/asan"
	"github.com/freehold-go/freehold/internal/lockrank"
	"github.com/freehold-go/freehold/internal/mode"
	"github.com/freehold-go/freehold/internal/monitor"
	"github.com/freehold-go/freehold/internal/owners"
	"github.com/freehold-go/freehold/internal/vm"
)

const (
	// DefaultSampleRate is the rate of Go's memory profile, in bytes.
	DefaultSampleRate = 512 << 10

	// GuardsPerSecond is the budget of FREEHOLD_DEBUG=guard=1/N.
	GuardsPerSecond = 500

	// CanGuard reports whether this build can make memory inaccessible.
	CanGuard = !vm.GoBacked

	// RedZone is the number of bytes in a red zone.
	RedZone = 32

	// maxSampleRate keeps gaps within their type.
	maxSampleRate = 1 << 48

	// blockRate is the rate of the countdown without samples: sizes count next to nothing then.
	blockRate = 1 << 40

	// maxExtraRates is a number of extra bytes, in rates, that every gap is below. A block that
	// counts them is an event.
	maxExtraRates = 64
)

// settings say which blocks are watched. mu is held while they change.
var settings struct {
	mu         lockrank.Mutex[lockrank.Settings]
	rate       atomic.Int64  // bytes per sample on average; 1 samples each block, 0 none
	oneIn      atomic.Int64  // one block in oneIn is guarded; 0 guards none
	budget     tokenBucket   // of guards
	quarantine atomic.Int64  // bytes of freed blocks that each heap keeps; 0 without red zones
	seed       atomic.Uint64 // state of the random numbers in tests; 0 for the runtime's numbers
	changed    func(counting bool)
}

// Countdown is the input of the caches' countdowns to events. Fast paths load its fields, in
// package heap from assembly too.
//
//go:linkname Countdown freehold.countdown
var Countdown struct {
	Extra atomic.Int64 // bytes that each block counts in addition
	Rate  atomic.Int64 // mean gap between events in bytes; 0 if nothing is counted
}

// CountdownExtra is for the assembly.
const CountdownExtra = unsafe.Offsetof(Countdown.Extra)

// Counting reports whether caches count down.
func Counting() bool { return Countdown.Rate.Load() != 0 }

func init() {
	if n, on := mode.Quarantine(); on {
		SetQuarantine(n)
	} else if asan.Enabled {
		SetQuarantine(mode.DefaultQuarantine)
	}
	if rate, on := mode.Bytes("profile", 1, DefaultSampleRate); on {
		SetSampleRate(rate)
	} else if owners.On() {
		SetSampleRate(1)
	}
	if n, sampled, on := mode.OneIn("guard"); on {
		guardByMode(n, sampled)
	}
}

// guardByMode is SetGuardRate for FREEHOLD_DEBUG.
func guardByMode(n int, sampled bool) {
	if !CanGuard {
		fmt.Fprintln(os.Stderr, "freehold: FREEHOLD_DEBUG: guard: there are no guards in this build, whose memory is Go's own")
		return
	}
	perSecond := 0
	if sampled {
		perSecond = GuardsPerSecond
	}
	SetGuardRate(n, perSecond)
	if err := monitor.Start(); err != nil {
		fmt.Fprintf(os.Stderr, "freehold: FREEHOLD_DEBUG: guard: faults are not explained: %v\n", err)
	}
}

// OnChange calls f now and after each change of the settings. f makes the caches count down anew,
// and gets whether they have anything to count. There is one f.
func OnChange(f func(counting bool)) {
	settings.mu.Lock()
	defer settings.mu.Unlock()
	settings.changed = f
	f(Countdown.Rate.Load() != 0)
}

// SampleRate returns the rate of samples.
func SampleRate() int { return int(settings.rate.Load()) }

// SetSampleRate sets the rate for the allocations after it, and returns the old one. It drains the
// caches of all heaps, since their countdowns have the old rate.
func SetSampleRate(rate int) (was int) {
	arg.AtLeast("track.SetSampleRate", "bytes", rate, 0)
	settings.mu.Lock()
	defer settings.mu.Unlock()
	was = int(settings.rate.Swap(min(int64(rate), maxSampleRate)))
	if was != SampleRate() {
		recount()
	}
	return was
}

// SetGuardRate guards one block in n from now on, or none if n is 0. It guards at most perSecond
// blocks a second, or any number if perSecond is 0. It returns the old n. It drains the caches of
// all heaps, as SetSampleRate does.
func SetGuardRate(n, perSecond int) (was int) {
	arg.AtLeast("track.SetGuardRate", "n", n, 0)
	arg.AtLeast("track.SetGuardRate", "perSecond", perSecond, 0)
	if !CanGuard {
		return 0
	}
	settings.mu.Lock()
	defer settings.mu.Unlock()
	was = int(settings.oneIn.Swap(int64(n)))
	settings.budget.set(perSecond)
	recount()
	return was
}

// GuardRate returns n if one block in n is guarded, 0 if none is.
func GuardRate() int { return int(settings.oneIn.Load()) }

// SetQuarantine gives every block a red zone from now on, and lets each heap keep that number of
// bytes of freed blocks in quarantine. With 0 bytes blocks have no red zones. It returns the old
// number, and drains the caches of all heaps, as SetSampleRate does.
func SetQuarantine(bytes int) (was int) {
	settings.mu.Lock()
	defer settings.mu.Unlock()
	was = int(settings.quarantine.Swap(int64(bytes)))
	recount()
	return was
}

// Zone returns the bytes of each block's red zone, 0 if there are none.
func Zone() int {
	if settings.quarantine.Load() > 0 {
		return RedZone
	}
	return 0
}

// EachBlock returns why each block is watched from the start on, or "" if not every block is.
func EachBlock() string {
	if Zone() > 0 {
		return "FREEHOLD_DEBUG has each block checked"
	}
	return ""
}

// recount makes the caches count anew after a setting has changed. settings.mu is held.
func recount() {
	rate, rates := settings.rate.Load(), 0.0
	if n := settings.oneIn.Load(); n > 0 {
		rates = min(-math.Log1p(-1/float64(n)), maxExtraRates)
	}
	if Zone() > 0 {
		rates = maxExtraRates
	}
	if rates > 0 && rate == 0 {
		rate = blockRate
	}
	// Rounded up: the probability of an event may be too large, but not too small.
	Countdown.Extra.Store(int64(math.Ceil(rates * float64(rate))))
	Countdown.Rate.Store(rate)
	if settings.changed != nil {
		settings.changed(rate > 0)
	}
}

// Gap returns the bytes that a countdown counts before the next event: a number with exponential
// distribution around its rate.
func Gap() int64 { return gap(Countdown.Rate.Load()) }

func gap(rate int64) int64 {
	if rate <= 1 {
		return 0
	}
	return int64(min(exponential.ExpFloat64(), maxExtraRates-1) * float64(rate))
}

// Due reports whether a block of size bytes, which no cache has counted, is an event.
func Due(size int) bool {
	rate := Countdown.Rate.Load()
	return rate != 0 && size > 0 && gap(rate) < int64(size)+Countdown.Extra.Load()
}

// choose draws whether an event, a block of size bytes, is guarded. weight is the number of blocks
// that it represents if it is sampled, else 0.
func choose(size int) (guarded bool, weight float64) {
	n, sampled := settings.oneIn.Load(), chance(int64(size), settings.rate.Load())
	sample := true
	if n > 0 || Zone() > 0 {
		guards := 0.0
		if n > 0 {
			guards = 1 / float64(n)
		}
		in := random() * chance(int64(size)+Countdown.Extra.Load(), Countdown.Rate.Load())
		if guarded = in <= guards; guarded {
			sample = random() <= sampled
		} else {
			sample = in-guards <= sampled*(1-guards)
		}
	}
	if sample && sampled > 0 {
		weight = 1 / sampled
	}
	return guarded, weight
}

// sampleAgain draws whether a resized block is sampled, and returns the number of blocks that it
// then represents, or 0. It is no event: a resized block is never guarded.
func sampleAgain(size int) (weight float64) {
	rate := settings.rate.Load()
	if rate == 0 || gap(rate) >= int64(size) {
		return 0
	}
	return 1 / chance(int64(size), rate)
}

// chance returns the probability that a gap is below size.
func chance(size, rate int64) float64 {
	switch {
	case rate == 0:
		return 0
	case rate == 1:
		return 1
	}
	key := uint64(size)*0x9e3779b97f4a7c15 ^ uint64(rate)
	c := &chances[key>>32%uint64(len(chances))]
	value := c.value.Load()
	if c.check.Load()^key != value || value == 0 {
		value = math.Float64bits(-math.Expm1(-float64(size) / float64(rate)))
		c.value.Store(value)
		c.check.Store(value ^ key)
	}
	return math.Float64frombits(value)
}

// chances remembers results of chance, whose exponential would take a fifth of the time of an event.
// check is the value and the arguments in one word, so a value never counts for the arguments of
// another goroutine that stores at the same time. (Hyatt and Mann, "A Lockless Transposition Table
// Implementation for Parallel Search", 2002.)
var chances [64]struct{ value, check atomic.Uint64 }

// exponential draws gaps, by the ziggurat method: a logarithm would take most of the time of an
// event.
var exponential = rand.New(source{})

// source is a rand.Source for any number of goroutines. The runtime's numbers need no atomic
// operation, so processors share no cache line.
type source struct{}

func (source) Uint64() uint64 {
	if settings.seed.Load() == 0 {
		return rand.Uint64()
	}
	// Splitmix64, by Steele, Lea and Flood, 2014, for tests.
	x := settings.seed.Add(0x9e3779b97f4a7c15)
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// random returns a number in (0, 1].
func random() float64 { return float64(source{}.Uint64()>>11+1) / (1 << 53) }

// tokenBucket bounds the blocks that are guarded in a second. It fills with perSecond tokens a
// second, holds as much as one second brings, and each guard takes a token.
type tokenBucket struct {
	mu        lockrank.Mutex[lockrank.Leaf]
	perSecond int // 0 is no bound
	tokens    float64
	at        time.Time // when tokens was right
}

// now is the clock of the bucket. Tests have their own.
var now = time.Now

func (b *tokenBucket) set(perSecond int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.perSecond, b.tokens, b.at = perSecond, float64(perSecond), now()
}

// take takes a token. It reports false if there is none.
func (b *tokenBucket) take() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.perSecond == 0 {
		return true
	}
	t := now()
	b.tokens = min(b.tokens+t.Sub(b.at).Seconds()*float64(b.perSecond), float64(b.perSecond))
	b.at = t
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}
