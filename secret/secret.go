// Secrets: the calls of the package. chunk.go has their memory.

package secret

import (
	"errors"
	"runtime"
	"strings"
	"sync"

	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/vm"
)

var (
	// ErrDestroyed is returned by Use of a secret whose Destroy has begun.
	ErrDestroyed = errors.New("freehold: the secret is destroyed")

	// ErrWeak matches errors for a system that refuses a property of Options.Need. The error names
	// the property and the system's error: the limit of locked memory, or a missing system call.
	ErrWeak = errors.New("freehold: the secret's memory is weaker than Options.Need")
)

// A Strength is a set of properties of a secret's memory.
type Strength uint8

const (
	// Locked memory is never written to swap. It counts against RLIMIT_MEMLOCK.
	Locked = Strength(vm.Locked)

	// Hidden memory is in the page tables of this process alone, and not in the kernel's (memfd_secret,
	// Linux 5.14). ptrace, /proc/pid/mem and process_vm_readv cannot read it, even as root. System
	// calls that pin the pages of a buffer, such as a read with O_DIRECT, fail with EFAULT.
	Hidden = Strength(vm.Hidden)

	// NoDump memory is left out of core dumps (MADV_DONTDUMP).
	NoDump = Strength(vm.NoDump)

	// NoFork memory does not reach forked children: they read zeros (MADV_WIPEONFORK), or have no
	// such memory. Package os/exec never gives memory to a child.
	NoFork = Strength(vm.NoFork)

	// Closed memory faults unless a Use runs, and on a write in Use.
	Closed = Strength(vm.Closed)

	// Guarded memory lies between pages that always fault. Without Options.Share a secret ends at
	// such a page, to the byte.
	Guarded = Strength(vm.Guarded)
)

var names = [...]string{"Locked", "Hidden", "NoDump", "NoFork", "Closed", "Guarded"}

// String returns the names of the properties, as in "Locked|NoDump", or "none".
func (s Strength) String() string {
	var has []string
	for i, name := range names {
		if s&(1<<i) != 0 {
			has = append(has, name)
		}
	}
	if len(has) == 0 {
		return "none"
	}
	return strings.Join(has, "|")
}

// Options are the options of a [Store].
type Options struct {
	// Need are properties that each secret must have. New and Make fail with ErrWeak if the system
	// refuses one, for example at the limit of locked memory. With a Need of 0 they accept any
	// strength; see [Secret.Strength].
	Need Strength

	// Share puts several secrets of up to half a page into one page. Their sizes are rounded up to a
	// power of two, at least 16 bytes. A Use of one makes its neighbours readable too.
	Share bool
}

// A Store makes secrets. It is safe for concurrent use and needs no Close. A store with Share
// keeps no page without secrets.
type Store struct {
	need  Strength
	share bool

	mu   sync.Mutex
	room map[uintptr][]*chunk // chunks with a free slot, by the size of their slots
}

// NewStore returns a store. It takes no memory for secrets yet. It panics if o.Need has a property
// that does not exist.
func NewStore(o *Options) *Store {
	s := &Store{room: map[uintptr][]*chunk{}}
	if o != nil {
		arg.Range("secret.NewStore", "Need", int(o.Need), 0, 1<<len(names)-1)
		s.need, s.share = o.Need, o.Share
	}
	return s
}

// A Secret is bytes that only [Secret.Use] makes readable. They never change. The collector destroys
// a Secret at some time after the last reference to it is gone.
//
// A secret with pages of its own also takes about 230 bytes of Go's heap. Printing or encoding a
// Secret shows none of its bytes.
type Secret struct{ slot *slot }

// New makes a secret of a copy of b, and wipes b. On an error, b is unchanged; the error matches
// [ErrWeak], or the system has no memory. Other copies of b remain, such as the string that it was
// converted from. [Store.Make] needs no copy.
//
// On Linux a process may have about 16,000 chunks of pages with secrets, a quarter of
// vm.max_map_count. Beyond that New and Make fail, which leaves mappings to Go's runtime.
func (s *Store) New(b []byte) (*Secret, error) {
	secret, err := s.Make(len(b), func(dst []byte) error { copy(dst, b); return nil })
	if err == nil {
		clear(b)
	}
	return secret, err
}

// Make makes a secret of size bytes that fill writes, for example by [crypto/rand.Read] or
// [io.ReadFull]. They are zero when fill begins. fill must not keep b, which may have any alignment.
// If fill returns an error or panics, Make wipes the bytes, and returns the error.
//
// Make panics if size is negative or too large for memory.
func (s *Store) Make(size int, fill func(b []byte) error) (*Secret, error) {
	arg.Range("secret.Store.Make", "size", size, 0, int(^uint(0)>>2))
	sl, err := s.take(uintptr(size))
	if err != nil {
		return nil, err
	}
	made := false
	defer func() {
		if !made {
			_ = sl.destroy()
		}
	}()
	if err := sl.use(&sl.chunk.writers, fill); err != nil {
		return nil, err
	}
	made = true
	secret := &Secret{sl}
	runtime.AddCleanup(secret, func(sl *slot) { _ = sl.destroy() }, sl)
	return secret, nil
}

// Use calls f with the secret's bytes and returns its error. The bytes are valid until f returns. f
// must not write them. If the memory is Closed, a write faults, and so does a read after f has
// returned or panicked, unless another Use of the page runs.
//
// Any number of goroutines may Use a secret at once, and f may Use any secret, this one too. Use
// returns [ErrDestroyed], and does not call f, if Destroy has begun. Any other error of Use itself is
// the system's, which refused to open or close the memory. The next Use tries again to close it.
//
// The Use that opens a page and the one that closes it each make a system call, which interrupts the
// other processors that run the program. Both calls together take several microseconds. Other Uses
// take about 80 ns (BenchmarkUse).
func (s *Secret) Use(f func(b []byte) error) error {
	err := s.slot.use(&s.slot.chunk.readers, f)
	runtime.KeepAlive(s)
	return err
}

// Destroy waits until each Use of the secret has returned, and wipes the secret. A function that Use
// calls must not destroy its secret: Destroy would wait for itself. A second Destroy waits for the
// first. An error is the system's. If it refused to open the memory, the bytes stay, but are
// inaccessible, and the memory is not used again.
func (s *Secret) Destroy() error { return s.slot.destroy() }

// Len returns the number of bytes. It may be called after Destroy.
func (s *Secret) Len() int { return int(s.slot.size) }

// Strength returns the properties of the secret's memory.
func (s *Secret) Strength() Strength { return s.slot.chunk.strength }
