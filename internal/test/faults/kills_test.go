// Kills: processes with buffers that are killed at random moments.
//
// The moment of the kill and the progress of the process are random. The file must be right
// whatever they are.

//go:build linux

package faults

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/buffer"
	"github.com/freehold-go/freehold/internal/test/filetest"
)

const (
	pathOf  = "FREEHOLD_FAULTS_PATH"
	roundOf = "FREEHOLD_FAULTS_ROUND"
)

// A content is the object of a random program of calls: a buffer, or its model.
type content interface {
	write(b []byte) error
	truncate(n int)
	trim()
	commit() error
	sync() error
	reopen() error // Close and Open
	size() int
}

const maxContent = 2 << 20

// program makes random calls on c until one fails. They depend only on r and on the sizes of c.
func program(c content, r *rand.Rand) error {
	for {
		var err error
		switch call := r.IntN(100); {
		case c.size() > maxContent:
			c.truncate(r.IntN(maxContent))
		case call < 50:
			err = c.write(Noise()[r.IntN(len(Noise())/2):][:r.IntN(1<<r.IntN(18))])
		case call < 85:
			err = c.commit()
		case call < 90:
			err = c.sync()
		case call < 95:
			c.truncate(r.IntN(c.size() + 1))
		case call < 98:
			c.trim()
		default:
			err = c.reopen()
		}
		if err != nil {
			return err
		}
	}
}

// opened is a persistent buffer. It reports each commit to the parent process.
type opened struct {
	*buffer.Buffer
	path      string
	committed int
}

// tell writes a byte to the parent process, which will kill this one.
func (o *opened) tell(err error) error {
	o.committed = o.Len()
	if err == nil {
		_, err = os.Stdout.Write([]byte{'.'})
	}
	return err
}

func (o *opened) write(b []byte) error { _, err := o.Write(b); return err }
func (o *opened) trim()                { o.Trim() }
func (o *opened) commit() error        { return o.tell(o.Commit()) }
func (o *opened) sync() error          { return o.tell(o.Sync()) }
func (o *opened) size() int            { return o.Len() }

func (o *opened) truncate(n int) {
	commits := n < o.committed
	o.Truncate(n)
	if commits {
		o.tell(nil)
	}
}

func (o *opened) reopen() (err error) {
	n := o.Len()
	if err := o.Close(); err != nil {
		return err
	}
	if o.Buffer, err = buffer.Open(o.path, nil); err != nil {
		return err
	}
	if o.Len() != n {
		return fmt.Errorf("opened with %d bytes, closed with %d", o.Len(), n)
	}
	return o.tell(nil)
}

// write is the process to be killed.
func write() error {
	round, err := strconv.Atoi(os.Getenv(roundOf))
	if err != nil {
		return err
	}
	path := os.Getenv(pathOf)
	b, err := buffer.Open(path, nil)
	if err != nil {
		return err
	}
	return program(&opened{Buffer: b, path: path, committed: b.Len()}, Random(round))
}

// model computes the file's contents after each commit, and ends after a given number of them.
type model struct {
	data      []byte
	committed int
	left      int // commits
	states    [][]byte
}

func (m *model) commit() error {
	m.committed = len(m.data)
	if m.left--; m.left < 1 { // keep the last two
		m.states = append(m.states, bytes.Clone(m.data))
	}
	if m.left < 0 {
		return io.EOF
	}
	return nil
}

func (m *model) write(b []byte) error { m.data = append(m.data, b...); return nil }
func (m *model) trim()                {}
func (m *model) sync() error          { return m.commit() }
func (m *model) reopen() error        { return m.commit() }
func (m *model) size() int            { return len(m.data) }

func (m *model) truncate(n int) {
	m.data = m.data[:n]
	if n < m.committed {
		_ = m.commit()
	}
}

// statesAfter returns the possible contents of the file, which began as data, when a program has
// reported n commits: its contents after the last of them, or after one more.
func statesAfter(data []byte, n, round int) [][]byte {
	m := &model{data: bytes.Clone(data), committed: len(data), left: n}
	if n == 0 {
		m.states = append(m.states, data)
	}
	_ = program(m, Random(round))
	return m.states
}

// child starts this program in a role. The reader gets the bytes that it reports.
func child(t *testing.T, as, path string, round int) (*exec.Cmd, io.Reader) {
	cmd := Self(t, fmt.Sprint("-seed=", Seed()))
	cmd.Env = append(cmd.Env, role+"="+as, pathOf+"="+path, fmt.Sprint(roundOf, "=", round))
	cmd.Stderr = &bytes.Buffer{}
	told := freehold.Must(cmd.StdoutPipe())
	filetest.Must(t, cmd.Start())
	return cmd, told
}

// killed kills a child after a random time and returns the number of commits that it reported.
func killed(t *testing.T, r *rand.Rand, cmd *exec.Cmd, told io.Reader) (commits int) {
	if r.IntN(8) > 0 {
		first := make([]byte, 1+r.IntN(30))
		commits, _ = io.ReadAtLeast(told, first, 1+r.IntN(len(first)))
	}
	time.AfterFunc(time.Duration(r.IntN(5000))*time.Microsecond, func() { _ = cmd.Process.Kill() })
	rest := freehold.Must(io.Copy(io.Discard, told))
	_ = cmd.Wait()
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGKILL {
		t.Fatalf("the child: %v: %s", cmd.ProcessState, cmd.Stderr)
	}
	return commits + int(rest)
}

// However a writer is killed, its file opens to the last commit.
func TestKillsOfAWriter(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	start := time.Now()
	var data []byte
	commits, last, largest := 0, 0, 0
	for n := range Kills() {
		r := Random(-1 - n)
		cmd, told := child(t, "writer", path, n)
		k := killed(t, r, cmd, told)
		commits += k

		look := path
		if r.IntN(2) == 0 { // the next writer continues with this one's file
			look = filepath.Join(dir, "copy")
			left, err := os.ReadFile(path)
			if err != nil && !(os.IsNotExist(err) && k == 0) {
				t.Fatal(err)
			}
			filetest.Must(t, os.WriteFile(look, left, 0o600))
		}
		b, err := buffer.Open(look, nil)
		if err != nil {
			t.Fatalf("kill %d, -seed %d: %v", n, Seed(), err)
		}
		states := statesAfter(data, k, n)
		found := -1
		for i, state := range states {
			if bytes.Equal(b.Bytes(), state) {
				found = i
			}
		}
		if found < 0 {
			t.Fatalf("kill %d, -seed %d: after commit %d the file has %d bytes, which are neither that nor the next one", n, Seed(), k, b.Len())
		}
		if found > 0 {
			last++
		}
		data = bytes.Clone(b.Bytes())
		largest = max(largest, len(data))
		filetest.Must(t, b.Close())
		if r.IntN(16) == 0 {
			filetest.Must(t, os.Remove(path))
			data = nil
		}
		Show("kills", n+1, Kills())
	}
	t.Logf("%d kills after %d commits, files of up to %d KiB, %.1f s: each opened to a commit, %d times to one that was not told", Kills(), commits, largest>>10, time.Since(start).Seconds(), last)
}

// spill is a process with temporary files, to be killed.
func spill() error {
	round, err := strconv.Atoi(os.Getenv(roundOf))
	if err != nil {
		return err
	}
	dir := os.Getenv(pathOf)
	for r := Random(round); ; {
		b := buffer.New(freehold.Default(), &buffer.Options{SpillAfter: 1, Dir: dir})
		records, err := buffer.NewRecords(b, nil)
		if err != nil {
			return err
		}
		for range r.IntN(2000) {
			if err := records.AppendBytes(Noise()[r.IntN(len(Noise())/2):][:r.IntN(100)]); err != nil {
				return err
			}
		}
		if err := records.SortBy(context.Background(), nil, nil); err != nil {
			return err
		}
		if err := b.Close(); err != nil {
			return err
		}
		if _, err := os.Stdout.Write([]byte{'.'}); err != nil {
			return err
		}
	}
}

// However a process with temporary files is killed, it leaves none of them.
func TestKillsOfASpiller(t *testing.T) {
	dir := t.TempDir()
	start := time.Now()
	files := 0
	for n := range Kills() {
		cmd, told := child(t, "spiller", dir, n)
		files += 2 * killed(t, Random(-1-n), cmd, told)
		left := freehold.Must(os.ReadDir(dir))
		if len(left) > 0 {
			t.Fatalf("kill %d left %v", n, left)
		}
		Show("kills", n+1, Kills())
	}
	t.Logf("%d kills after %d temporary files, %.1f s: none was left", Kills(), files, time.Since(start).Seconds())
}
