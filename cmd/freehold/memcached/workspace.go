// Workspaces: the buffers of sessions. A session that waits for its client has none.
//
//	session --giveWorkspace--> spares, up to maxSpares --take--> session

package memcached

import (
	"sync"

	"github.com/freehold-go/freehold"
)

// A workspace has the buffers of a session, and the state of the command that it runs.
type workspace struct {
	memory  []byte // the block with own and ownOut
	own     []byte // the session's own buffer
	ownOut  []byte // its own reply buffer, of length 0
	text    []byte // the line of the current command
	words   [maxWords][]byte
	rest    []byte // the part of text after words
	lookups lookups
	passed  []passed
	later   *meta // an mg whose client may win the entry, with its state in look
	look    look
	key     [maxKey]byte
	scratch []byte
}

// giveWorkspace makes the workspace a spare for other sessions.
func (s *session) giveWorkspace() {
	if s.workspace != nil {
		s.spares.give(s.options.Heap, s.workspace)
		s.workspace, s.buf, s.out = nil, nil, nil
	}
}

// lendWorkspace gives the workspace to other sessions if nothing is in its buffers.
func (s *session) lendWorkspace() {
	if s.from == s.to && s.inBlock == nil && s.outBlock == nil {
		s.giveWorkspace()
	}
}

// spares are workspaces that no session uses. The one given last is taken first, since the
// processor's caches still have it. So many clients that send one command at a time use few of them.
type spares struct {
	mu  sync.Mutex // guards all
	all []*workspace
}

const maxSpares = 64

// take returns a spare or a new workspace.
func (sp *spares) take(heap freehold.Allocator) (*workspace, error) {
	if w := sp.last(); w != nil {
		return w, nil
	}
	memory, err := heap.Alloc(ownBytes, 1)
	if err != nil {
		return nil, err
	}
	return &workspace{memory: memory, own: memory[:bufferBytes:bufferBytes], ownOut: memory[bufferBytes:bufferBytes]}, nil
}

// last takes the last spare, or returns nil.
func (sp *spares) last() (w *workspace) {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	if n := len(sp.all); n > 0 {
		w, sp.all = sp.all[n-1], sp.all[:n-1]
	}
	return w
}

// give makes w a spare, or frees it if there are enough.
func (sp *spares) give(heap freehold.Allocator, w *workspace) {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	if len(sp.all) == maxSpares {
		heap.Free(w.memory)
		return
	}
	sp.all = append(sp.all, w)
}

// free frees all spares.
func (sp *spares) free(heap freehold.Allocator) {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	for _, w := range sp.all {
		heap.Free(w.memory)
	}
	sp.all = nil
}
