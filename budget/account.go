// Accounts: limits of the parts of a process.
//
//	process
//	+- search     600 MiB
//	|  +- tenant a  400 MiB
//	|  +- tenant b  400 MiB
//	+- ingest     200 MiB
//
// Each account has a heap of its own. Its soft and hard limits are for the memory of this heap and
// of the heaps of the accounts below. A heap charges its account when it takes pages, so a block
// in pages that the heap already has makes no charge. internal/limits has the limits and charges,
// payer.go makes room before a request is refused, crossing.go reports pressure, evict.go evicts
// for a cache.

package budget

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/freehold-go/freehold/budget/internal/limits"
	"github.com/freehold-go/freehold/budget/internal/pressure"
	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/heap"
	"github.com/freehold-go/freehold/internal/owners"
	"github.com/freehold-go/freehold/internal/pin"
)

// AccountOptions configures an [Account]; nil means all defaults. Sizes are bytes. Negative
// limits panic.
type AccountOptions struct {
	// Name appears in messages, Stats and profiles, after the names of the accounts above:
	// process/search/tenant. Empty means "account 1", "account 2" and so on.
	Name string

	// MaxBytes is the most that the account and the accounts below it may commit together. 0 means
	// no limit but the limits of the accounts above. It may be above the parent's limit, which
	// holds too.
	MaxBytes int64

	// Soft is the use above which functions of OnPressure are called. 0 means 85% of MaxBytes, or
	// never if that is 0 too.
	Soft int64

	// Decay is the time after which unused memory is given back, as HeapOptions.Decay: 0 means a
	// second. It is given back at once before another account that shares a limit is refused a
	// block.
	Decay time.Duration

	// Logger gets a line with the Stats when the level of the pressure changes: a warning for Soft
	// and Hard, Info for Calm. A rise is logged unless trimming the heaps ends it, and a fall when
	// it has lasted ten seconds. A goroutine of its own writes the lines, so a Logger that blocks
	// or panics stops nothing. nil means the parent's Logger. [Budget.Account] has no lines of its
	// own: Options.Logger has the budget's.
	Logger *slog.Logger
}

// Account is a heap with a limit within larger limits: a tenant within a subsystem within the
// process. It implements freehold.Owner. No allocation brings the account and those below it
// together above its hard limit, even for a moment. Before a request is refused, all accounts that
// share the full limit give back free pages. If they are too few, Alloc returns a [FullError],
// which matches freehold.ErrOutOfMemory. The search for free pages takes at most a tenth of the
// time, so a request soon after a refused one may miss pages that others freed meanwhile.
//
// Whole pages and the heap's own bookkeeping count, as in HeapOptions.MaxBytes. An account with one
// block has about 100 KiB, so accounts are for limits of a few MiB and more. Blocks of up to 4 KiB
// leave a sixteenth of the limit free, 1 MiB at most, for the heap's bookkeeping and for larger
// blocks. So they may be refused while Stats.Room is above 0, and FullError.Bytes includes the
// bytes to leave free.
//
// Alloc and Free cost the same as with a freehold.Heap (BenchmarkAccountPair), since the
// account is charged only when its heap takes pages. A charge takes a mutex of the whole tree for
// less than a microsecond. All methods are safe for concurrent use.
//
// Make one with [NewAccount]. [Budget.Account] is the account of the process, whose limit follows
// the container's. Methods of a zero Account panic.
type Account struct {
	node       *limits.Node
	leader     leader        // of the process's account; nil for all others
	roundCount atomic.Uint64 // rounds so far
	rounds     turns
	reported   reported // guarded by the tree's lock: Changed and Node.Locked hold it
	searches   searches
	callbacks  callbacks
	logger     *slog.Logger // nil if there is none
	lines      turns
	evicted    atomic.Int64 // bytes, by AllocOrEvict
	closing    sync.Once
	final      atomic.Pointer[AccountStats] // nil before Close

	h heap.Heap // last, as pin.New demands
}

// h is the last field.
const _ = -(unsafe.Sizeof(Account{}) ^ (unsafe.Offsetof(Account{}.h) + unsafe.Sizeof(Account{}.h)))

// unnamed counts the accounts made without a name.
var unnamed atomic.Uint32

// NewAccount returns an empty account below parent, or one at the top if parent is nil. It takes
// no off-heap memory before the first block, and 20 KiB on the Go heap. Close ends it. An account
// that is made in a testing/synctest bubble may be used outside of it. NewAccount panics if
// parent is closed.
func NewAccount(parent *Account, o *AccountOptions) *Account {
	return makeAccount(parent, o, time.Now, nil)
}

// makeAccount is NewAccount with a clock for a new tree, and a leader.
func makeAccount(parent *Account, o *AccountOptions, now func() time.Time, l leader) *Account {
	const call = "budget.NewAccount"
	if o == nil {
		o = &AccountOptions{}
	}
	checkLimits(call, "AccountOptions.Soft", o.Soft, "AccountOptions.MaxBytes", o.MaxBytes)
	a := pin.New[Account]()
	a.leader, a.logger = l, o.Logger
	a.rounds = turns{do: a.round, now: time.Now, after: afterFunc}
	a.lines = turns{do: a.logLevel, now: time.Now, after: afterFunc}
	name := o.Name
	if name == "" {
		name = fmt.Sprint("account ", unnamed.Add(1))
	}
	var above *limits.Node
	if parent != nil {
		parent.node.MustBeMade(call)
		above, a.logger = parent.node, cmp.Or(o.Logger, parent.logger)
	}
	a.node = limits.New(above, name, watcher{a}, now)
	a.node.SetLimits(o.Soft, o.MaxBytes)
	a.h.Init(heap.Options{Name: a.node.Name(), Decay: o.Decay, Payer: payer{a}})
	owners.Watch(a, "budget.Account", a.node.Name())
	return a
}

func checkLimits(call, softName string, soft int64, hardName string, hard int64) {
	if soft < 0 {
		arg.Panicf(call, "%s %d, want 0 or more", softName, soft)
	}
	if hard < 0 {
		arg.Panicf(call, "%s %d, want 0 or more", hardName, hard)
	}
}

// Alloc implements freehold.Allocator. The error says which account is full: a [FullError].
func (a *Account) Alloc(size, align int) ([]byte, error) { return a.h.Alloc(size, align, false) }

// Zeroed implements freehold.Allocator.
func (a *Account) Zeroed(size, align int) ([]byte, error) { return a.h.Alloc(size, align, true) }

// Resize implements freehold.Allocator, as Heap.Resize does.
func (a *Account) Resize(b []byte, size int) ([]byte, bool) { return a.h.Resize(b, size) }

// Free implements freehold.Allocator. It panics if b is not exactly a live block of a.
func (a *Account) Free(b []byte) { a.h.Free(b) }

// Owns implements freehold.Owner. It is false for blocks of accounts below.
func (a *Account) Owns(b []byte) bool { return a.h.Owns(b) }

// GoodSize returns the size of the block that Alloc would use for size bytes.
func (a *Account) GoodSize(size int) int { return a.h.GoodSize(size) }

// Name returns the account's name after the names of those above: process/search/tenant.
func (a *Account) Name() string {
	a.node.MustBeMade("Account.Name")
	return a.node.Name()
}

// Trim gives back the memory of the account and the accounts below it that holds no live block.
// Blocks that FREEHOLD_DEBUG keeps in the quarantine of an account below stay.
func (a *Account) Trim() {
	a.node.MustBeOpen("Account.Trim")
	a.h.Trim()
	a.trim(func() bool { return false })
}

// SetLimits replaces AccountOptions.Soft and MaxBytes. If a limit is below the use, blocks stay:
// free pages are given back, the pressure rises, and requests for more are refused until the use
// has fallen. It panics for negative limits.
func (a *Account) SetLimits(soft, hard int64) {
	const call = "Account.SetLimits"
	a.node.MustBeOpen(call)
	checkLimits(call, "soft", soft, "hard", hard)
	a.node.SetLimits(soft, hard)
	a.trimWhileShort()
}

// OnPressure calls f when the account is short of memory, until remove is called, or Close. The
// level is [Soft] above the soft limit. It is [Hard] above 31/32 of the hard limit, and for a
// second or two after a refused request, unless room for the request is found earlier. f is called
// again each second until the level is Calm, and once then. Priorities, deadlines and panics are as
// for Budget.OnPressure. Before f, the heaps of the account and of those below are trimmed.
//
// f is called within some milliseconds of the crossing (BenchmarkReaction), in a goroutine of its
// own: the call that crosses does not wait. It may allocate from the account, and may be refused.
// Wanted includes the bytes of a refused request. OnPressure panics if f is nil.
//
// For [Budget.Account] it is Budget.OnPressure.
func (a *Account) OnPressure(priority int, f func(context.Context, Pressure)) (remove func()) {
	const call = "Account.OnPressure"
	a.node.MustBeOpen(call)
	if f == nil {
		arg.Panicf(call, "f is nil")
	}
	if a.leader != nil {
		return a.leader.OnPressure(priority, f)
	}
	remove = a.callbacks.add(priority, f)
	a.node.Locked(func(s pressure.State) {
		if s.Level > Calm {
			a.rounds.wake()
		}
	})
	return remove
}

// Close ends the account and all accounts below it. It frees all their blocks, live or not, and
// refunds the accounts above. After Close, Stats returns the figures from before it, so it shows
// how many blocks were live. Other goroutines must have stopped using the account. Later calls that
// would change it panic, except Close. Functions of OnPressure may still run.
func (a *Account) Close() {
	a.node.MustBeMade("Account.Close")
	a.closing.Do(func() {
		var below []*Account
		if a.node.HasBelow() { // each visits all heaps of the process
			a.each(func() bool { return false }, func(other *Account) { below = append(below, other) })
		}
		for _, other := range slices.Backward(below) { // each before its parent
			if other != a {
				other.closing.Do(other.close)
			}
		}
		a.close()
	})
}

// close ends an account that has no others below it.
func (a *Account) close() {
	owners.Closed(a)
	final := a.Stats()
	final.Closed = true
	a.h.Close()
	a.node.Close()
	a.final.Store(&final)
	a.rounds.end()
	a.lines.end()
}
