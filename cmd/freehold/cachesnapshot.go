package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"sync"
	"syscall"
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
	notRegular := &os.PathError{Op: "create", Path: s.path, Err: errors.New("not a regular file")}
	if info, err := os.Stat(s.path); err == nil {
		if !info.Mode().IsRegular() {
			return nil, notRegular
		}
		os.Chmod(s.path, mode) // the new file takes it over
	}
	f, err := atomicfile.Create(s.path)
	if err != nil {
		return nil, err
	}
	if f.InPlace() { // a descriptor
		err = notRegular
	} else {
		err = f.Chmod(mode)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// load begins to fill the cache from the file. Without a file, the cache begins empty. With a damaged
// file it ends empty too, since the server must start, and load logs the error. If the file is no
// snapshot, load returns an error, so that the server does not replace it.
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
			s.log.Printf("begins empty: %v", err)
		}
	}
	return nil
}

// begin reads the head of the file, and goes on in the background. After an error it does not.
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
			s.log.Printf("begins empty: %v", &os.PathError{Op: "restore", Path: path, Err: err})
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

// untilSignal returns a context that is done when ctx is, or at the first signal. A second signal
// only logs that the server is stopping, so that it does not lose the snapshot. The third ends the
// process. SIGHUP only runs reload, unless that is nil.
func untilSignal(ctx context.Context, log *log.Logger, reload func()) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	signals, hangups := make(chan os.Signal, 3), make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	endings := []os.Signal{os.Interrupt, syscall.SIGHUP}
	if reload != nil {
		endings = endings[:1]
		signal.Notify(hangups, syscall.SIGHUP)
	}
	for _, sig := range endings {
		if !signal.Ignored(sig) { // scripts ignore SIGINT for commands in the background, nohup ignores SIGHUP
			signal.Notify(signals, sig)
		}
	}
	ended := make(chan struct{})
	go func() {
		for n := 1; ; n++ {
			select {
			case <-ended:
				return
			case <-hangups:
				reload()
				n--
				continue
			case <-signals:
			}
			switch n {
			case 1:
				cancel()
			case 2:
				log.Print("stopping, and writing the snapshot if there is one; another signal ends this at once, and the old snapshot stays")
			default:
				os.Exit(cli.Interrupted)
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		signal.Stop(hangups)
		close(ended)
		cancel()
	}
}
