package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"github.com/freehold-go/freehold/internal/test/suite"
)

// overlay runs the command in a folder and returns its output.
func overlay(t *testing.T, m *suite.Module, libraries ...string) string {
	t.Helper()
	t.Chdir(m.Dir)
	code, out, err := command(t.Context(), append([]string{"overlay"}, libraries...)...)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, err)
	}
	return out
}

// user is a program of ristretto that is no part of the workspace.
func user(t *testing.T) *suite.Module {
	clone, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	m := &suite.Module{Dir: t.TempDir()}
	m.Write(t, "go.mod", `module example.com/user

go 1.26.0

require (
	github.com/dgraph-io/ristretto/v2 v2.4.2
	github.com/freehold-go/freehold v0.1.0
)

replace github.com/freehold-go/freehold => `+clone+"\n")
	m.Write(t, "main.go", `package main

import (
	"fmt"

	"github.com/dgraph-io/ristretto/v2/z"
	"github.com/freehold-go/freehold"
)

func main() {
	small, large := z.Calloc(1000, "user"), z.Calloc(20<<20, "user")
	fmt.Println(z.NumAllocBytes(), freehold.AllStats()[1].Name)
	var during, after z.MemStats
	z.ReadMemStats(&during)
	z.Free(large)
	z.Free(small)
	z.ReadMemStats(&after) // now, and not when the heap's decay has passed
	fmt.Println(during.Resident >= 20<<20, after.Resident < 1<<20, z.Leaks())
}
`)
	m.Go(t, "mod", "tidy")
	m.Go(t, "mod", "vendor")
	return m
}

func TestOverlay(t *testing.T) {
	m := user(t)
	overlay(t, m, "ristretto", "--dir", "user's folder")
	words := strings.TrimPrefix(overlay(t, m, "ristretto", "badger", "--dir", "user's folder"), "Build with: go build ") // a second time
	if runtime.GOOS != "windows" {
		unquoted, err := exec.Command("sh", "-c", "printf '%s\\n' "+words).Output()
		if words = string(unquoted); err != nil {
			t.Fatal(err)
		}
	}
	flags := strings.Split(strings.TrimSpace(words), "\n")
	if out := m.Go(t, append(append([]string{"run"}, flags...), ".")...); out != "20972520 z\ntrue true NO leaks found." {
		t.Error(out)
	}

	for _, tt := range []struct {
		mistake func()
		args    string
		code    int
		want    string
	}{
		{func() {}, "leveldb", cli.Misused, "badger"},
		{func() {}, "pebble", cli.Misused, "vendor has no github.com/cockroachdb/pebble/v2: run go mod vendor"},
		{func() { m.Write(t, "file", "") }, "badger --dir=file/new", cli.Failed, "freehold: mkdir file: not a directory\n"},
		{func() { // as of a user of package analysis alone, a module of its own
			files, _ := filepath.Glob("vendor/github.com/freehold-go/freehold/*.go")
			for _, file := range files {
				os.Remove(file)
			}
		}, "badger", cli.Misused, "vendor has no github.com/freehold-go/freehold: import it"},
		{func() { os.Remove("go.mod") }, "badger", cli.Misused, "run it in the folder of the module's go.mod"},
		{func() { m.Write(t, "go.mod", "module github.com/dgraph-io/ristretto/v2\n") }, "badger", cli.Failed, "this version of github.com/dgraph-io/ristretto/v2 is unknown: open z"},
		{func() { m.Write(t, "z/calloc_nojemalloc.go", "package z") }, "badger", cli.Failed, "is unknown: its files have no \"func CallocNoRef"},
		{func() { m.Write(t, "z/calloc_nojemalloc.go", "package z // "+ristretto.known[0]) }, "badger", cli.OK, "go build -overlay="}, // no vendor folder
	} {
		tt.mistake()
		if code, out, err := command(t.Context(), append([]string{"overlay"}, strings.Fields(tt.args)...)...); code != tt.code || !strings.Contains(out+err, tt.want) {
			t.Errorf("exit code %d: %q, want %d: %q", code, out+err, tt.code, tt.want)
		}
	}
}

// The shell takes a quoted word as it is, whatever characters it has.
func TestShellWord(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("it has another shell")
	}
	for c := byte(1); c < 0x80; c++ {
		word := string([]byte{'a', c, '2'})
		out, err := exec.Command("sh", "-c", "printf %s "+shellWord(word)).Output()
		if string(out) != word {
			t.Errorf("%q is %q: %v", word, out, err)
		}
	}
}

// Badger's own tests, and a load that must leave nothing allocated.
func TestBadgersTests(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes minutes, and modules from the network: make test-long")
	}
	m := suite.Download(t, "github.com/dgraph-io/badger/v4@v4.9.6")
	m.Write(t, "core.go", "package badger\n\nimport _ \"github.com/freehold-go/freehold\"\n")
	m.Write(t, "load_test.go", load)
	m.Go(t, "mod", "tidy")
	m.Go(t, "mod", "vendor")
	overlay(t, m, "badger")
	flags := []string{"-mod=vendor", "-overlay=freehold-overlay/overlay.json"}
	m.Test(t, 60, append(flags, "./table", "./skl", "./trie", "./y")...)
	m.Test(t, 1, append(flags, "-run", "^TestLoadLeaks$", ".")...)
}

// Pebble's, with cgo and without. Its packages are in the copy itself, as a fork's are.
func TestPebblesTests(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes minutes, and modules from the network: make test-long")
	}
	m := suite.Download(t, "github.com/cockroachdb/pebble/v2@v2.1.7")
	m.Write(t, "internal/cache/offheap_test.go", `package cache

import "testing"

func TestValuesAreOffHeap(t *testing.T) {
	if valueEntryGoAllocated {
		t.Error("each block has a Value on Go's heap")
	}
}
`)
	overlay(t, m, "pebble")
	for _, cgo := range []string{"0", "1"} {
		t.Setenv("CGO_ENABLED", cgo)
		m.Test(t, 10, "-overlay=freehold-overlay/overlay.json", "./internal/manual", "./internal/cache", "./internal/arenaskl")
	}
}

// load is a test of Badger: 400,000 entries of 256 bytes, in random order, by a WriteBatch.
const load = `package badger

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/dgraph-io/ristretto/v2/z"
)

func TestLoadLeaks(t *testing.T) {
	db, err := Open(DefaultOptions(t.TempDir()).WithLoggingLevel(ERROR).WithMemTableSize(8 << 20))
	if err != nil {
		t.Fatal(err)
	}
	batch, random := db.NewWriteBatch(), rand.New(rand.NewPCG(1, 2))
	for range 400_000 {
		key, value := binary.BigEndian.AppendUint64(nil, random.Uint64()), make([]byte, 256)
		if err := batch.Set(key, value); err != nil {
			t.Fatal(err)
		}
	}
	if err := batch.Flush(); err != nil {
		t.Fatal(err)
	}
	most := z.NumAllocBytes()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if n := z.NumAllocBytes(); n != 0 || most == 0 {
		t.Errorf("%d bytes were allocated before Close, and %d after: %s", most, n, z.Leaks())
	}
}
`
