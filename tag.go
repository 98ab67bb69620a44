// Tags: allocation counts by purpose.
//
// All Tagged with one tag share one account, which stays for the life of the process. A Tagged
// above another allocates through it, so the account of "db" includes the counts of "db/cache".

package freehold

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/heap"
)

// maxTags is the most accounts. The tags beyond them share the account of otherTags.
const maxTags = 1 << 12

// otherTags is the tag in AllTags for all tags without an account of their own.
const otherTags = "(other)"

// Tagged allocates from another allocator, and counts the blocks under a tag that names their
// purpose: a cache, an index, a connection. It counts neither empty blocks nor failed calls.
// [AllTags] reports the counts by tag. A Tagged without a name has no tag and counts its own blocks
// alone.
//
//	db := freehold.NewTagged(heap, "db")
//	cache := freehold.NewTagged(db, "cache") // has the tag db/cache
//	index := freehold.NewTagged(db, "index") // has the tag db/index
//
// The counts of db include the counts of db/cache and db/index. Several Tagged may have one tag,
// above one allocator or several: their blocks count together. Sampled blocks of a Heap (package
// track) carry the tag in profiles, the longest if several Tagged are above each other. The chunks
// of an arena or a pool whose parent is a Tagged carry its tag too.
//
// It is safe for concurrent use if next is. It adds two atomic operations on shared words to each
// call, which cost more under contention. Each Tagged below adds the same again
// (BenchmarkWrappers).
//
// Make one with [NewTagged]. Alloc, Zeroed, Resize and Free of a zero Tagged panic.
type Tagged struct {
	next    Allocator
	tag     string
	account *account // shared by all Tagged with the tag
}

// NewTagged returns a Tagged around next, which needs no Close. Its tag is name. If next is a
// Tagged with a tag, also inside a Limit or Locked, the tag is next's tag, a slash and name. With
// the name "" it has no tag: it still counts, but is not in AllTags.
//
// It panics if next is nil, or if name has a slash, a character that does not print, or invalid
// UTF-8. Use few tags, since they stay: beyond 4,096 in a process, blocks count for the tag
// (other).
func NewTagged(next Allocator, name string) *Tagged {
	arg.NotNil("NewTagged", "next", next)
	if !isTagName(name) {
		arg.Panicf("NewTagged", "name %q, want printing characters without slashes", name)
	}
	if name == "" {
		return &Tagged{next: next, account: &account{}}
	}
	if below := tagIn(next); below != "" {
		name = below + "/" + name
	}
	t := &Tagged{next: next, tag: name, account: accountOf(name)}
	if isCounted(next, t.account) {
		t.account = &account{} // both are (other): count each block there once
	}
	return t
}

// isCounted reports whether a, or a Tagged inside its wrappers, counts in the given account.
func isCounted(a Allocator, in *account) bool {
	for {
		if t, ok := a.(*Tagged); ok && t.account == in {
			return true
		}
		w, ok := a.(interface{ ownsBy() Allocator })
		if !ok {
			return false
		}
		a = w.ownsBy()
	}
}

func isTagName(name string) bool {
	bad := func(r rune) bool { return r == '/' || !unicode.IsPrint(r) }
	return utf8.ValidString(name) && !strings.ContainsFunc(name, bad)
}

// tagIn returns the outermost tag in a's wrappers, or "".
func tagIn(a Allocator) string {
	for {
		if t, ok := a.(*Tagged); ok && t.tag != "" {
			return t.tag
		}
		w, ok := a.(interface{ ownsBy() Allocator })
		if !ok {
			return ""
		}
		a = w.ownsBy()
	}
}

// Tag returns the tag: the names of the Tagged from the lowest to this one, with slashes between
// them. It is "" if this one has no name.
func (t *Tagged) Tag() string { return t.tag }

// Counts returns the counts of the tag. They include other Tagged with the tag, and all Tagged
// above them. Some fields may include a call in progress that others do not yet. A block counts as
// live until its Free has returned, so PeakBytes may exceed the true peak by blocks whose Free was
// in progress.
func (t *Tagged) Counts() Counts { return t.account.counts() }

// String returns the tag and its live blocks:
//
//	tag "db/cache": 2 blocks, 300 bytes live
func (t *Tagged) String() string {
	if t == nil || t.account == nil {
		return "<nil>"
	}
	c := t.Counts()
	return "tag " + strconv.Quote(t.tag) + ": " + strconv.Itoa(c.Live) + " blocks, " + arg.Bytes(c.LiveBytes) + " live"
}

// mark gives a sampled block the tag.
func (t *Tagged) mark(b []byte) {
	if t.tag != "" {
		heap.Tag(b, t.tag)
	}
}

// Alloc implements [Allocator].
func (t *Tagged) Alloc(size, align int) ([]byte, error) {
	b, err := t.next.Alloc(size, align)
	t.account.replace("Tagged.Alloc", 0, len(b))
	t.mark(b)
	return b, err
}

// Zeroed implements [Allocator].
func (t *Tagged) Zeroed(size, align int) ([]byte, error) {
	b, err := t.next.Zeroed(size, align)
	t.account.replace("Tagged.Zeroed", 0, len(b))
	t.mark(b)
	return b, err
}

// Resize implements [Allocator]. It changes LiveBytes. A block resized to 0 counts
// as freed. It panics as Free does.
func (t *Tagged) Resize(b []byte, size int) ([]byte, bool) {
	t.account.mustHold("Tagged.Resize", len(b))
	r, ok := t.next.Resize(b, size)
	if ok {
		t.account.replace("Tagged.Resize", len(b), len(r))
		t.mark(r)
	}
	return r, ok
}

// Free implements [Allocator]. If next panics, Free counts nothing. It panics, before next frees b,
// if b has more bytes than are live with the tag, or if no block with the tag is live.
func (t *Tagged) Free(b []byte) {
	t.account.mustHold("Tagged.Free", len(b))
	t.next.Free(b)
	t.account.replace("Tagged.Free", len(b), 0)
}

// Owns implements [Owner] by next's Owns. It is false if next is not an Owner.
func (t *Tagged) Owns(b []byte) bool { return owns(t.next, b) }

// GoodSize returns next's GoodSize of size, or size if next has none.
func (t *Tagged) GoodSize(size int) int { return goodSize(t.next, size) }

func (t *Tagged) ownsBy() Allocator { return t.next }

// TagStats are the counts of a tag: of all [Tagged] with it, and of all Tagged above them.
type TagStats struct {
	Tag string
	Counts
}

var tags = struct {
	mu       sync.Mutex
	accounts map[string]*account
}{accounts: map[string]*account{}}

// accountOf returns the account of a tag.
func accountOf(tag string) *account {
	tags.mu.Lock()
	defer tags.mu.Unlock()
	if tags.accounts[tag] == nil && len(tags.accounts) >= maxTags-1 {
		tag = otherTags
	}
	if tags.accounts[tag] == nil {
		tags.accounts[tag] = &account{}
	}
	return tags.accounts[tag]
}

// AllTags returns the counts of each tag, sorted by name, so db comes right before db/cache. A tag
// is listed from the first NewTagged until the process ends, even if its Tagged are dropped: its
// live blocks stay live, and its totals never fall. Do not sum the counts of db and db/cache: the
// former include the latter.
//
// It costs a few loads for each tag, and sorts them. NewTagged blocks while it runs.
func AllTags() []TagStats {
	tags.mu.Lock()
	defer tags.mu.Unlock()
	all := make([]TagStats, 0, len(tags.accounts))
	for tag, a := range tags.accounts {
		all = append(all, TagStats{tag, a.counts()})
	}
	slices.SortFunc(all, func(a, b TagStats) int {
		return slices.CompareFunc(strings.Split(a.Tag, "/"), strings.Split(b.Tag, "/"), cmp.Compare[string])
	})
	return all
}
