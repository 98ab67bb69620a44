package intern_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"unique"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/intern"
)

// keys returns n distinct strings of 16 bytes, in one block.
func keys(n int) []string {
	b := make([]byte, 16*n)
	for i := range n {
		binary.BigEndian.PutUint64(b[16*i:], uint64(i)*0x9E3779B97F4A7C15)
		binary.BigEndian.PutUint64(b[16*i+8:], uint64(i))
	}
	all := string(b)
	s := make([]string, n)
	for i := range s {
		s[i] = all[16*i : 16*i+16]
	}
	return s
}

// BenchmarkIntern is an Intern of a new or a known string of 16 bytes, in random order. The
// Go map has the string as key and value.
func BenchmarkIntern(b *testing.B) {
	for _, n := range []int{1e4, 1e6, 5e6} {
		all := keys(n)
		rand.Shuffle(n, func(i, j int) { all[i], all[j] = all[j], all[i] })
		b.Run(fmt.Sprintf("strings=%d/new/Strings", n), func(b *testing.B) {
			for b.Loop() {
				s := intern.New(freehold.Default(), nil)
				for _, v := range all {
					s.Intern(v)
				}
				b.StopTimer()
				b.ReportMetric(float64(s.Stats().Reserved)/float64(n), "B/string")
				s.Close()
				b.StartTimer()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/string")
		})
		b.Run(fmt.Sprintf("strings=%d/new/map", n), func(b *testing.B) {
			for b.Loop() {
				m := map[string]string{}
				for _, v := range all {
					if _, ok := m[v]; !ok {
						c := string([]byte(v))
						m[c] = c
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/string")
		})
		s := intern.New(freehold.Default(), nil)
		m := map[string]string{}
		for _, v := range all {
			s.Intern(v)
			m[v] = v
		}
		rand.Shuffle(n, func(i, j int) { all[i], all[j] = all[j], all[i] })
		b.Run(fmt.Sprintf("strings=%d/known/Strings", n), func(b *testing.B) {
			i, sum := 0, 0
			for b.Loop() {
				id, _ := s.Intern(all[i])
				sum += int(id)
				if i++; i == n {
					i = 0
				}
			}
		})
		b.Run(fmt.Sprintf("strings=%d/known/map", n), func(b *testing.B) {
			i, sum := 0, 0
			for b.Loop() {
				sum += len(m[all[i]])
				if i++; i == n {
					i = 0
				}
			}
		})
		b.Run(fmt.Sprintf("strings=%d/value", n), func(b *testing.B) {
			i, sum := 0, 0
			for b.Loop() {
				sum += len(s.Value(intern.ID(i * 7919 % n)))
				i++
			}
		})
		s.Close()
	}
}

// BenchmarkShared is an Intern of a known string of 500,000, from all goroutines.
func BenchmarkShared(b *testing.B) {
	const n = 1e6
	all := keys(n)
	b.Run("Shared", func(b *testing.B) {
		s := intern.NewShared(freehold.Default(), nil)
		defer s.Close()
		for _, v := range all[:n/2] {
			s.Intern(v)
		}
		b.RunParallel(func(pb *testing.PB) {
			r := rand.New(rand.NewPCG(rand.Uint64(), 1))
			for pb.Next() {
				s.Intern(all[r.IntN(n/2)])
			}
		})
	})
	b.Run("sync.Map", func(b *testing.B) {
		var m sync.Map
		for _, v := range all[:n/2] {
			m.Store(v, v)
		}
		b.RunParallel(func(pb *testing.PB) {
			r := rand.New(rand.NewPCG(rand.Uint64(), 1))
			for pb.Next() {
				m.LoadOrStore(all[r.IntN(n/2)], "")
			}
		})
	})
	b.Run("unique", func(b *testing.B) {
		kept := make([]unique.Handle[string], 0, n/2)
		for _, v := range all[:n/2] {
			kept = append(kept, unique.Make(v))
		}
		b.RunParallel(func(pb *testing.PB) {
			r := rand.New(rand.NewPCG(rand.Uint64(), 1))
			for pb.Next() {
				unique.Make(all[r.IntN(n/2)])
			}
		})
		clear(kept)
	})
	b.Run("Value", func(b *testing.B) {
		s := intern.NewShared(freehold.Default(), nil)
		defer s.Close()
		for _, v := range all[:n/2] {
			s.Intern(v)
		}
		b.RunParallel(func(pb *testing.PB) {
			r := rand.New(rand.NewPCG(rand.Uint64(), 1))
			sum := 0
			for pb.Next() {
				sum += len(s.Value(intern.ID(r.IntN(n / 2))))
			}
		})
	})
}
