package disk

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/freehold-go/freehold/internal/test/child"
	"github.com/freehold-go/freehold/internal/test/filetest"
)

// A process is killed at any moment of its life, Open and Close included. The next store begins
// empty, or with the index of a clean stop, and has no wrong value.
func TestKill(t *testing.T) {
	const dir = "FREEHOLD_DISK_KILLED"
	const keys = 300
	if at := os.Getenv(dir); at != "" {
		o := small(t, 16)
		o.Dir = at
		x, _ := open(t, o)
		fmt.Println("open")
		for i := range uint64(1000) {
			key := keyOf(rand.IntN(keys))
			version := rand.Uint64()
			if !x.set(key, valueOf(key, version, rand.IntN(1000)), Meta{Version: version}) {
				x.settle()
			}
			x.get(keyOf(rand.IntN(keys))) // so that records are written again
			if i%10 == 0 {
				fmt.Println(i)
			}
		}
		fmt.Println("closing")
		filetest.Must(t, x.s.Close(x.save))
		fmt.Println("closed")
		return
	}
	child.Need(t)
	kills := 500
	if testing.Short() {
		kills = 20
	}
	o := small(t, 16)
	warmed, hits := 0, 0
	for n := range kills {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKill$")
		cmd.Env = append(os.Environ(), dir+"="+o.Dir, "TMPDIR="+t.TempDir(), "GORACE=atexit_sleep_ms=0")
		out, err := cmd.StdoutPipe()
		filetest.Must(t, err, cmd.Start())
		r := rand.New(rand.NewPCG(uint64(n), 1))
		lines := bufio.NewScanner(out)
		said := ""
		until := map[int]string{0: "closing", 1: "closed"}[n%4]
		for left := r.IntN(100); (until == "" && left > 0 || until != "" && said != until) && lines.Scan(); left-- {
			said = lines.Text()
		}
		if n%2 == 0 { // not always just after a line
			time.Sleep(time.Duration(r.IntN(4000)) * time.Microsecond)
		}
		filetest.Must(t, cmd.Process.Kill())
		for lines.Scan() {
			if said != "closed" { // the test's own lines follow
				said = lines.Text()
			}
		}
		_ = cmd.Wait()
		x, warm := open(t, o)
		if warm {
			warmed++
		} else if said == "closed" {
			t.Error("a clean stop left no index")
		}
		if warm && said != "closing" && said != "closed" && said != "" {
			t.Errorf("an index of a store that was killed after %q", said)
		}
		for i := range keys {
			v, m, ok, err := x.get(keyOf(i))
			if ok && err == nil {
				hits++
			}
			if ok && (err != nil || !bytes.HasPrefix(v, keyOf(i)) || !bytes.Equal(v, valueOf(keyOf(i), m.Version, len(v)))) {
				t.Errorf("key %d has a wrong value: %v", i, err)
			}
		}
		save := x.save
		if n%8 < 4 { // the next process finds an index half of the time
			save = nil
		}
		filetest.Must(t, x.s.Close(save))
	}
	if warmed == 0 || hits == 0 {
		t.Errorf("%d of %d stores were warm, with %d hits", warmed, kills, hits)
	}
	t.Logf("%d kills, %d warm, %d hits", kills, warmed, hits)
}
