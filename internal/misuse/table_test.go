// docs/reliability.md is written from the programs:
//
//	go test ./internal/misuse -update

package misuse

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/reliability.md")

const tablePath = "../../docs/reliability.md"

const tableHead = `# What freehold detects, and what it does not

Each line is a program with one mistake. Package ` + "`internal/misuse`" + ` runs it, and a correct twin of it that nothing may
complain about; this page is written from the same source, by ` + "`go test ./internal/misuse -update`" + `.

- **plain**: the build as it comes, with ` + "`-tags freehold_portable`" + `, under checkptr, on 386, and with the collector running all
  the time.
- **debug**: with ` + "`-tags freehold_debug`" + `, where memory without a block is filled with 0xDB and looked at.
- **race**: with ` + "`-race`" + `, where blocks are Go memory that the race detector sees.
- **in tests**: the blocks come from ` + "`alloctest.New(t)`" + `.

*panic* is a panic at the guilty call, whose text begins with "freehold: " and says what was wrong; for a late write it comes
when that memory is used again. *error* is an error that the guilty call returns, and that says what was wrong; *out of
memory* is one that matches ErrOutOfMemory. *false* and *nil* are what the guilty call returns. *Panic, or no harm*: which
one is a matter of nanoseconds; no block gets two owners, unless the two frees and then two allocations of it each fall into
the same few nanoseconds. *Fault* is the system's, at the guilty instruction. *Race report* is the race detector's. *Test
fails* names the block and where it was allocated.

A dot is no promise: the mistake may show or not, and what follows from it is open. A dash, below *in tests*, is not
applicable: ` + "`alloctest.New`" + ` adds nothing there, and the column of the build is what a test sees.

A misuse that races with Close or Trim, such as a second Free of a block in another goroutine, may read bookkeeping that has
just been given back. It reads zero there, and is a panic as above. On Windows the read is a fault instead.
`

// table returns docs/reliability.md.
func table() string {
	var s strings.Builder
	s.WriteString(tableHead)
	total, promised := 0, 0
	for _, f := range families {
		fmt.Fprintf(&s, "\n## %s\n\n| mistake | plain | debug | race | in tests |\n|---|---|---|---|---|\n", f.name)
		for _, p := range f.programs {
			c := p.caught
			inTests := c.inTests.String()
			if c.inTests.kind == notPromised && c != (caught{}) {
				inTests = "–"
			}
			fmt.Fprintf(&s, "| %s | %s | %s | %s | %s |\n", p.mistake, c.plain, c.debug, c.race, inTests)
			total++
			if c != (caught{}) {
				promised++
			}
		}
	}
	fmt.Fprintf(&s, "\n%d mistakes, of which %d are detected in one build or another.\n", total, promised)
	return s.String()
}

func (h how) String() string {
	if h.kind == notPromised {
		return "·"
	}
	return string(h.kind)
}

func TestTableIsUpToDate(t *testing.T) {
	if *update {
		if err := os.WriteFile(tablePath, []byte(table()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(tablePath)
	if err != nil {
		t.Skip(err) // the sources are not here
	}
	if strings.ReplaceAll(string(got), "\r\n", "\n") != table() {
		t.Error("docs/reliability.md is not what the programs say: go test ./internal/misuse -update")
	}
}

// Mistakes are named once, so that a name finds one program.
func TestNamesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range families {
		for _, p := range f.programs {
			if seen[p.mistake] {
				t.Errorf("two programs are called %q", p.mistake)
			}
			seen[p.mistake] = true
		}
	}
}
