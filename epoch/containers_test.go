package epoch_test

import (
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/arena"
	"github.com/freehold-go/freehold/epoch"
	"github.com/freehold-go/freehold/internal/panics"
	"github.com/freehold-go/freehold/pool"
)

// containers returns an arena of one chunk and a pool of one block, which have a
// Domain, or one each if it is nil.
func containers(t *testing.T, domain *epoch.Domain) (*arena.Shared, *pool.Blocks) {
	s := arena.NewShared(alloctest.New(t), &arena.SharedOptions{ChunkBytes: 4096, MaxBytes: 4096, Domain: domain})
	t.Cleanup(s.Close)
	p := pool.NewBlocks(alloctest.New(t), 64, 8, &pool.Options{MaxBlocks: 1, Domain: domain})
	t.Cleanup(p.Close)
	return s, p
}

// TestOneGuardProtectsAllContainersOfADomain: whoever it was entered for, no block
// that any of them gives up is handed out again before it leaves.
func TestOneGuardProtectsAllContainersOfADomain(t *testing.T) {
	var domain epoch.Domain
	s, p := containers(t, &domain)
	for name, enter := range map[string]func() epoch.Guard{"the Domain": domain.Enter, "the arena": s.Enter, "the pool": p.Enter} {
		inArena := freehold.Must(s.Alloc(1000, 8))
		inPool := freehold.Must(p.Alloc(64, 8))
		inArena[0], inPool[0] = 1, 2
		g := enter()
		s.Reset()
		p.Retire(inPool)
		if _, err := s.Alloc(1000, 8); err == nil {
			t.Errorf("a guard of %s: the arena's memory is used again", name)
		}
		if _, err := p.Alloc(64, 8); err == nil {
			t.Errorf("a guard of %s: the pool's block is used again", name)
		}
		if inArena[0] != 1 || inPool[0] != 2 {
			t.Errorf("a guard of %s: the blocks begin with %d and %d, want 1 and 2", name, inArena[0], inPool[0])
		}
		g.Leave()
		if _, err := s.Alloc(1000, 8); err != nil {
			t.Errorf("the guard of %s has left: %v", name, err)
		}
		b, err := p.Alloc(64, 8)
		if err != nil {
			t.Errorf("the guard of %s has left: %v", name, err)
		}
		p.Free(b)
		s.Reset()
	}
}

// TestGuardsOfSeveralDomainsAreApart: containers without a Domain in their options
// have one each.
func TestGuardsOfSeveralDomainsAreApart(t *testing.T) {
	s, p := containers(t, nil)
	g := p.Enter()
	defer g.Leave()
	freehold.Must(s.Alloc(100, 8))
	s.Reset()
	if n := s.Stats().Retired; n != 0 {
		t.Errorf("%d bytes of the arena wait for a guard of the pool", n)
	}
}

// TestCloseUnderAGuardOfTheDomain panics where the guard may protect a block of
// the container, and where it cannot, closes.
func TestCloseUnderAGuardOfTheDomain(t *testing.T) {
	var domain epoch.Domain
	s, p := containers(t, &domain)
	freehold.Must(s.Alloc(100, 8))
	live := freehold.Must(p.Alloc(64, 8))

	first := domain.Enter()
	panics.Want(t, "...a guard is held that may protect its...", s.Close)
	panics.Want(t, "...a guard is held that may protect its...", p.Close)
	s.Reset()
	p.Retire(live)
	p.Trim()            // ends the epoch of what is retired
	second := p.Enter() // too late for blocks that were given up before
	panics.Want(t, "...a guard is held that may protect its...", s.Close)
	panics.Want(t, "...a guard is held that may protect its...", p.Close)
	first.Leave()
	p.Trim()
	if a, b := s.Stats().Retired, p.Stats().Retired; a+b != 0 {
		t.Errorf("the guard has left, and the arena has %d retired bytes, the pool %d retired blocks", a, b)
	}
	s.Close()
	p.Close()
	second.Leave()
	domain.Enter().Leave() // goes on
}
