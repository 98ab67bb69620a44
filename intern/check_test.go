package intern

import (
	"fmt"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
)

// Each invariant of a Shared is checked: what breaks it is found, and nothing else.
func TestCheckFindsWhatIsBroken(t *testing.T) {
	for name, damage := range map[string]func(s *Shared){
		"count of slots": func(s *Shared) { s.shards[5].table.used++ },
		"count of bytes": func(s *Shared) { s.store.bytes++ },
		"table of another hash": func(s *Shared) {
			a, b := &s.shards[1].table, &s.shards[2].table
			a.first, b.first, a.used, b.used = b.first, a.first, b.used, a.used
		},
		"empty table": func(s *Shared) { s.shards[3].table = table{}; s.shards[3].table.init() },
	} {
		t.Run(name, func(t *testing.T) {
			s := NewShared(alloctest.New(t), nil)
			for i := range 1000 {
				freehold.Must(s.Intern(fmt.Sprint("string ", i)))
			}
			if fault := s.check(); fault != "" {
				t.Error(fault)
			}
			before := [numShards]table{}
			for i := range s.shards {
				before[i] = s.shards[i].table
			}
			bytes := s.store.bytes
			damage(s)
			if s.check() == "" {
				t.Error("the damage is not found")
			}
			for i := range s.shards {
				s.shards[i].table = before[i]
			}
			s.store.bytes = bytes
			s.Close()
		})
	}
}
