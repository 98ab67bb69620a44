// Snapshot: the file from which a cache server starts warm.

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log"
	"os"
	"sync"
	"time"

	"github.com/freehold-go/freehold/cache"
	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"github.com/freehold-go/freehold/cmd/freehold/memcached"
	"github.com/freehold-go/freehold/internal/file/atomicfile"
)

// snapshots writes and restores the snapshot file of a server:
//
//	| snapshot of the cache | "freeholdflush" 0 0 0 | when flush_all is due, 8 B |
//
// The time is in nanoseconds of Unix time, little-endian. Without a flush_all that is due, the file
// ends with the cache's part.
//
// The server serves while it loads the file: an item that is not loaded yet is a miss, and a write
// wins over the file's item. No snapshot is written meanwhile, since it would lack items.
type snapshots struct {
	path   string // "" is none
	items  *cache.Cache
	server *memcached.Server
	log    *log.Logger
	loaded chan struct{} // closed when load has ended
}

const flushMagic = "freeholdflush\x00\x00\x00"

// mayWrite returns an error if the file cannot be written. It runs first, when there are no items
// to lose.
func (s *snapshots) mayWrite() error {
	if s.path == "" {
		return nil
	}
	f, err := s.create()
	if err != nil {
		return fmt.Errorf("--snapshot: %w", err)
	}
	return f.Close()
}

// create begins a file that only its owner may read, since keys and values may be private. It must
// be a regular file, which a complete snapshot can replace.
func (s *snapshots) create() (*atomicfile.File, error) {
	const mode = 0o600
	if info, err := os.Stat(s.path); err == nil && info.Mode().IsRegular() {
		os.Chmod(s.path, mode) // the new file takes it over
	}
	f, err := atomicfile.CreateRegular(s.path)
	if err != nil {
		return nil, err
	}
	if err := f.Chmod(mode); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// load begins to fill the cache from the file, if there is one. If the file is damaged, the server
// goes on without its items, and logs the error. If the file is no snapshot, load returns an error,
// so that the server does not replace it.
func (s *snapshots) load() error {
	if s.path == "" {
		close(s.loaded)
		return nil
	}
	switch err := s.begin(); {
	case errors.Is(err, cache.ErrForeign):
		return fmt.Errorf("--snapshot: %w; name another file, or remove it", err)
	case err != nil:
		close(s.loaded)
		if !errors.Is(err, os.ErrNotExist) {
			s.log.Printf("begins without the snapshot: %v", err)
		}
	}
	return nil
}

// begin reads the head of the file, and the rest in the background. After an error it reads no more.
func (s *snapshots) begin() error {
	f, err := os.Open(s.path)
	if err != nil {
		return err
	}
	due, isDue := flushOf(f)
	if isDue {
		s.server.FlushAt(due) // items may be on disk, even if the rest of the file is damaged
	}
	if isDue && !due.After(time.Now()) {
		f.Close()
		return fmt.Errorf("flush_all was due at %v", due)
	}
	rest, err := s.items.BeginRestore(f)
	if err != nil {
		f.Close()
		return &os.PathError{Op: "restore", Path: s.path, Err: err}
	}
	s.server.Loading(true)
	began, path := time.Now(), s.path
	go func() {
		defer close(s.loaded)
		defer s.server.Loading(false)
		defer f.Close()
		if err := rest(); err != nil {
			s.log.Printf("drops the items of the snapshot, and goes on with %s: %v",
				cli.Plural(s.items.Len(), "item"), &os.PathError{Op: "restore", Path: path, Err: err})
			return
		}
		s.log.Printf("%s from %s in %v", cli.Plural(s.items.Len(), "item"), path, time.Since(began).Round(time.Millisecond))
	}()
	return nil
}

// flushOf returns when a flush_all is due, from the end of a snapshot file, and whether one is.
func flushOf(f *os.File) (due time.Time, isDue bool) {
	end := make([]byte, len(flushMagic)+8)
	info, err := f.Stat()
	if err != nil {
		return time.Time{}, false
	}
	if _, err := f.ReadAt(end, info.Size()-int64(len(end))); err != nil || string(end[:len(flushMagic)]) != flushMagic {
		return time.Time{}, false
	}
	return time.Unix(0, int64(binary.LittleEndian.Uint64(end[len(flushMagic):]))), true
}

// save writes a snapshot, counts it and logs it. It waits for load.
func (s *snapshots) save() error {
	if s.path == "" {
		return nil
	}
	<-s.loaded
	err := s.write()
	if s.server.Saved(err); err != nil {
		return fmt.Errorf("--snapshot: %w", err)
	}
	s.log.Printf("%s to %s", cli.Plural(s.items.Len(), "item"), s.path)
	return nil
}

func (s *snapshots) write() error {
	f, err := s.create()
	if err != nil {
		return err
	}
	defer f.Close()
	if err := s.items.Snapshot(f); err != nil {
		return err
	}
	if due := s.server.FlushDue(); !due.IsZero() {
		if _, err := f.Write(binary.LittleEndian.AppendUint64([]byte(flushMagic), uint64(due.UnixNano()))); err != nil {
			return err
		}
	}
	return f.Commit()
}

// every saves at an interval until stop is called, which waits for a running save. It logs errors
// and goes on, since a disk may have room again.
func (s *snapshots) every(d time.Duration) (stop func()) {
	if d == 0 {
		return func() {}
	}
	done := make(chan struct{})
	var ended sync.WaitGroup
	ended.Go(func() {
		ticks := time.NewTicker(d)
		defer ticks.Stop()
		select {
		case <-done:
			return
		case <-s.loaded:
		}
		for {
			select {
			case <-done:
				return
			case <-ticks.C:
			}
			if err := s.save(); err != nil {
				s.log.Print(err)
			}
		}
	})
	return func() {
		close(done)
		ended.Wait()
	}
}
