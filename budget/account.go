// Accounts: limits of the parts of a process.
//
//	process                      each has a heap of its own, and soft and hard limits
//	+- search     600 MiB        of its own memory and that of the accounts below
//	|  +- tenant a  400 MiB
//	|  +- tenant b  400 MiB
//	+- ingest     200 MiB
//
// A heap charges its account where it takes pages, so a block that is allocated from free
// ones costs nothing more. ledger.go has the charges, crossing.go what happens at a limit, evict.go
// a cache's way on.

package budget

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/heap"
	"github.com/freehold-go/freehold/internal/owners"
	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/pin"
)

// AccountOptions configures an [Account]; nil means all defaults. Sizes are bytes.
type AccountOptions struct {
	// Name appears in messages, Stats and profiles, behind the names of the accounts above:
	// process/search/tenant. Empty means "account 1", "account 2" and so on.
	Name string

	// MaxBytes is what the account and those below it may have at most. 0 means no limit but
	// those of the accounts above. A negative one panics. One above the parent's is no mistake:
	// both hold, so the lower one counts.
	MaxBytes int64

	// Soft is where OnPressure's functions are called. 0 means 85% of MaxBytes, or never if that
	// is 0 too. A negative one panics.
	Soft int64

	// Decay is how long the account keeps memory that it does not use before others may
	// have it, as HeapOptions.Decay: 0 means a second. When another account is refused a block for
	// lack of it, it is given back at once.
	Decay time.Duration

	// Logger gets a line with the Stats when the level of the pressure changes: a warning for
	// Soft and Hard, and Info for Calm. A rise is logged unless trimming the heaps was enough, and a fall when it
	// has lasted ten seconds. Lines are written by a goroutine of their own, so a Logger that blocks or panics stops
	// nothing. nil means that of the parent; [Budget.Account] has Options.Logger, which tells of the budget.
	Logger *slog.Logger
}

// Account is a heap with a share of a larger limit: a tenant's within a subsystem's within the
// process's. It implements freehold.Owner. What it and the accounts below it have committed
// never exceeds its hard limit, at any moment, with any number of goroutines. When it would, the
// free pages of all that share the limit are given back first; then Alloc returns a
// [FullError], which matches freehold.ErrOutOfMemory. Looking for such pages takes a tenth of the
// time at most, so a request soon after one that was refused may miss what others freed meanwhile.
//
// What counts are whole pages and the heap's own bookkeeping, as in HeapOptions.MaxBytes. An account
// with one block has about 100 KiB. So accounts are for limits of a few
// MiB and more. Of its limit, blocks of up to 4 KiB leave a sixteenth free, 1 MiB at most, for the
// heap's bookkeeping and for larger blocks: they are refused while Stats has that much Room, and
// FullError.Bytes includes it.
//
// Its blocks are as those of a freehold.Heap, and cost the same (BenchmarkAccountPair): the account
// is charged only when its heap takes pages. That takes a mutex of the whole tree for less than a
// microsecond. All methods are safe for concurrent use.
//
// Make one with [NewAccount]. [Budget.Account] is the one of the process, whose limit follows the
// container's. Calls of a zero Account panic.
type Account struct {
	ledger *ledger
	name   string // behind those of the accounts above
	parent *Account

	// The rest, up to callbacks, is guarded by ledger.mu.
	soft, hard   int64
	asked        int64 // hard by AccountOptions or SetLimits
	followed     int64 // by the budget; hard is the lower one of both
	used         int64 // by its heap and the accounts below
	peak         int64
	children     int       // open accounts right below
	refused      int64     // bytes of the largest request that was refused and has no room
	refusedUntil time.Time // then that is forgotten
	refusals     uint64
	searchNext   time.Time // not before, free pages of those below are looked for
	trimNext     time.Time // nor are their caches drained
	pressure     Pressure
	told         Level // that the callbacks know
	rounded      uint64
	logged       Level         // of the last line
	fell         time.Time     // when the level fell below that
	final        *AccountStats // once closed

	budget    *Budget // whose account it is; nil for others
	callbacks callbacks
	rounds    turns
	logger    *slog.Logger // nil if there is none
	lines     turns
	closing   sync.Once
	evicted   atomic.Int64 // bytes, by AllocOrEvict

	h heap.Heap // last, as pin.New demands
}

const _ = -(unsafe.Sizeof(Account{}) ^ (unsafe.Offsetof(Account{}.h) + unsafe.Sizeof(Account{}.h)))

// unnamed counts the accounts made without a name.
var unnamed atomic.Uint32

// NewAccount returns an empty account below parent, or one at the top if parent is nil. It takes
// no off-heap memory before the first block, and 20 KiB on the Go heap. Close ends it. One that is
// made in a testing/synctest bubble may be used outside of it. It panics if parent is closed.
func NewAccount(parent *Account, o *AccountOptions) *Account {
	if o == nil {
		o = &AccountOptions{}
	}
	checkLimits("budget.NewAccount", "AccountOptions.Soft", o.Soft, "AccountOptions.MaxBytes", o.MaxBytes)
	a := pin.New[Account]()
	a.ledger, a.parent = &ledger{now: time.Now}, parent
	a.soft, a.hard, a.asked = o.Soft, o.MaxBytes, o.MaxBytes
	a.rounds = turns{do: a.round, now: time.Now, after: afterFunc}
	a.lines = turns{do: a.logLevel, now: time.Now, after: afterFunc}
	a.logger = o.Logger
	if a.name = o.Name; a.name == "" {
		a.name = fmt.Sprint("account ", unnamed.Add(1))
	}
	if parent != nil {
		parent.mustBeMade("budget.NewAccount")
		a.ledger = parent.ledger
		a.logger = cmp.Or(o.Logger, parent.logger)
		a.name = parent.name + "/" + a.name
		parent.adopt()
	}
	a.h.Init(heap.Options{Name: a.name, Decay: o.Decay, Payer: payer{a}})
	owners.Watch(a, "budget.Account", a.name)
	return a
}

// adopt counts an account that is made below a.
func (a *Account) adopt() {
	a.ledger.mu.Lock()
	defer a.ledger.mu.Unlock()
	a.mustBeOpen("budget.NewAccount")
	a.children++
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

// Live returns the number of the account's own live blocks. It costs a call of Stats.
func (a *Account) Live() int { return a.Stats().Live }

// Trim gives back what the account and those below it have without a live block, but for what
// FREEHOLD_DEBUG keeps in quarantine for those below.
func (a *Account) Trim() {
	a.mustBeUsable("Account.Trim")
	a.h.Trim()
	a.trim(func() bool { return false })
}

// SetLimits sets other limits, with the meanings of AccountOptions. Limits below what is in use
// take nothing away: free pages are given back, the pressure rises, and until use has fallen
// each request for more is refused. It panics for negative ones.
func (a *Account) SetLimits(soft, hard int64) {
	a.mustBeUsable("Account.SetLimits")
	checkLimits("Account.SetLimits", "soft", soft, "hard", hard)
	a.ledger.mu.Lock()
	a.soft, a.hard, a.asked = soft, lower(hard, a.followed), hard
	a.ledger.mu.Unlock()
	a.trimWhileShort()
}

// Close ends the account, its blocks, live or not, and all accounts below it.
// Their memory is given back, and the accounts above are no longer charged for it. Stats then has
// the figures of the moment before, so it tells what was live. Other goroutines must have
// stopped using the account. Later calls that would change it panic, but for a second Close.
// Functions of OnPressure may still run.
func (a *Account) Close() {
	a.mustBeMade("Account.Close")
	a.closing.Do(func() {
		for _, other := range a.descendants() {
			other.closing.Do(other.close)
		}
		a.close()
	})
}

// descendants returns the accounts below a, each before its parent: payers come in the order in
// which they were made.
func (a *Account) descendants() (all []*Account) {
	heap.EachPayer(func(p pages.Payer) {
		if other, ok := accountOf(p); ok && other != a && other.isIn(a) {
			all = append(all, other)
		}
	})
	slices.Reverse(all)
	return all
}

// close ends an account that has no others below it.
func (a *Account) close() {
	owners.Closed(a)
	final := a.Stats()
	final.Closed = true
	a.h.Close()
	a.ledger.mu.Lock()
	defer a.ledger.mu.Unlock()
	if a.parent != nil {
		a.parent.children--
	}
	a.final = &final
	a.rounds.end()
	a.lines.end()
}

// mustBeMade panics for a zero Account.
func (a *Account) mustBeMade(call string) {
	if a.ledger == nil {
		arg.Panicf(call, "zero value: budget.NewAccount makes an Account")
	}
}

// mustBeOpen panics after Close. ledger.mu is held.
func (a *Account) mustBeOpen(call string) {
	if a.final != nil {
		arg.Panicf(call, "account %q is closed", a.name)
	}
}

// mustBeUsable panics for a zero Account, and after Close.
func (a *Account) mustBeUsable(call string) {
	a.mustBeMade(call)
	a.ledger.mu.Lock()
	defer a.ledger.mu.Unlock()
	a.mustBeOpen(call)
}

// isIn reports whether a is b or below it.
func (a *Account) isIn(b *Account) bool { return a == b || a.parent != nil && a.parent.isIn(b) }

// eachHeap calls f for the heaps of a and of the accounts below until it is enough.
func (a *Account) eachHeap(enough func() bool, f func(*heap.Heap)) {
	heap.EachPayer(func(p pages.Payer) {
		if other, ok := accountOf(p); ok && other.isIn(a) && !enough() {
			f(&other.h)
		}
	})
}

// trim trims the heaps of a and of the accounts below until it is enough.
func (a *Account) trim(enough func() bool) { a.eachHeap(enough, (*heap.Heap).TrimSpare) }

// softLimit returns where the pressure begins, or 0 for never. ledger.mu is held.
func (a *Account) softLimit() int64 { return cmp.Or(a.soft, a.hard/100*softPercent) }
