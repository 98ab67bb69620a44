// The programs generate the tables of docs/reliability.md and README.md:
//
//	go test ./internal/test/misuse -run Tables -update
//
// The last column comes from docs/vet.md. Package analysis generates it from the same programs.

package misuse

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the tables")

const (
	tablePath = "../../../docs/reliability.md"
	shortPath = "../../../README.md"
	vetPath   = "../../../docs/vet.md"
)

const tableHead = `# What freehold detects and misses

Each row is a program with one mistake. Package ` + "`internal/test/misuse`" + ` runs it in each build and mode, beside a correct twin
that must run without a complaint. ` + "`make misuse`" + ` runs all of them, and writes the tables on this page from the same source.

## The columns

- **plain**: the default build, also with ` + "`-tags freehold_portable`" + `, under checkptr, on 386, and with the collector running all
  the time.
- **poison**: ` + "`FREEHOLD_DEBUG=poison`" + `, without another build. Blocks have red zones, and freed blocks go to a quarantine.
  Arenas, pools, intern and Chunked vectors fill and check their free memory. A cache lends a copy of a value, in a block of its own.
- **guard**: ` + "`FREEHOLD_DEBUG=guard`" + `, without another build. Each block ends at an inaccessible page, and is
  inaccessible after its Free. A value that a cache lends is a guarded block.
- **leak**: ` + "`FREEHOLD_DEBUG=leak`" + `, without another build. Each live block is recorded, and each heap, arena, pool, buffer and container.
- **asan**: ` + "`-asan`" + `, which needs a C compiler.
- **race**: ` + "`-race`" + `, where blocks are Go memory, so that the race detector sees them.
- **in tests**: the blocks come from ` + "`alloctest.New(t)`" + `.
- **vet**: the analyzer of [freeholdvet](vet.md) that reports the mistake, before the program runs.

A mode detects all that the plain build detects. Modes can be combined, as in ` + "`FREEHOLD_DEBUG=poison,leak`" + `.

## The cells

| | |
|---|---|
| panic | The guilty call panics; the text begins with "freehold: " and names the mistake. A write past the end is found when the block is freed. A late write is found when the memory is used again, or with poison by one of the next Allocs of the heap: an Alloc of n bytes checks n + 1,024 bytes of the quarantine. Trim and Close check all of it, and so does ` + "`track.AtExit`" + `. A pool checks free memory in Trim, Reset and Close too, and an arena its current chunk in Reset and Close. |
| error, out of memory | The guilty call returns an error that names the mistake, or one that matches ErrOutOfMemory. |
| false, nil | The guilty call returns this. |
| panic, or no harm | Nanoseconds decide between the two. No block gets two owners, unless both frees and then two allocations of the block all fall into the same few nanoseconds. |
| no harm | Nothing is damaged: guarded blocks are not resized in place. |
| fault | The system stops the program at the guilty instruction. |
| guard report | A fault, and a report by the monitor or ` + "`track.Explain`" + `: the block, the distance to it, and the stacks of its allocation and Free. The end of a block is exact to the byte if its size is a multiple of its alignment. Otherwise a write to the bytes between the end and the alignment is a panic in Free, and a read of them is missed. |
| leak report | ` + "`track.AtExit`" + ` lists live blocks, owners that were dropped without Close, and open heaps, each with the stack that made it. |
| race report, asan report | The race detector or the address sanitizer reports the guilty instruction, or the second of two. |
| test fails | The message names the block and the line that allocated it. |
| CheckPointers | ` + "`track.CheckPointers`" + ` names the block and the byte, but not with ` + "`-tags freehold_portable`" + `. |
| · | No promise: the mistake may show or not, and its consequences are open. |
| – | Only below *in tests*: ` + "`alloctest.New`" + ` adds nothing, and a test sees the result of its build and mode. |

A mistake that races with Close or Trim, such as a second Free of a block in another goroutine, may read bookkeeping that has
just been given back. It reads zero there and panics as above. On Windows the read faults instead. A Free that has found
its block live just before Close writes to bookkeeping a few nanoseconds later. The write faults if Close has finished
meanwhile, and the process ends. Only a stop of the world in each Close would prevent that. With a profile or red zones, a
call beside Close leaves no record, so the Free of another heap's block at the same address is not refused.
`

// short are the programs in the README's table.
var short = []string{
	"double free",
	"double free of a block whose memory has its next owner, of equal length",
	"FreeSlice of a slice that the built-in append returned",
	"a Go pointer in a block, stored by unsafe code",
	"read after Free",
	"write after Free, then an Alloc of the same size",
	"write to an arena's block after Reset",
	"write past the end",
	"write past the end, into the next block",
	"write before the beginning",
	"a block that is never freed",
	"two goroutines write to one block",
}

// detects returns the cells of a program's row: how each column detects its mistake.
func (p program) detects(vet map[string]string) []string {
	var cells []string
	for _, c := range columns {
		cells = append(cells, c.promise(p.caught).String())
	}
	inTests := p.caught.inTests.String()
	if p.caught.inTests.kind == notPromised && p.caught != (caught{}) {
		inTests = "–"
	}
	return append(cells, inTests, cmp.Or(vet[p.mistake], "·"))
}

func heads() []string {
	var heads []string
	for _, c := range columns {
		heads = append(heads, c.name)
	}
	return append(heads, "in tests", "vet")
}

func row(cells ...string) string { return "| " + strings.Join(cells, " | ") + " |\n" }

func head(first string) string {
	return row(append([]string{first}, heads()...)...) + strings.Repeat("|---", len(heads())+1) + "|\n"
}

// table returns docs/reliability.md. vet has the analyzer that reports each mistake.
func table(vet map[string]string) string {
	var s strings.Builder
	s.WriteString(tableHead)
	total, promised := 0, 0
	in := make([]int, len(heads()))
	for _, f := range families {
		fmt.Fprintf(&s, "\n## %s\n\n%s", f.name, head("mistake"))
		for _, p := range f.programs {
			cells := p.detects(vet)
			s.WriteString(row(append([]string{p.mistake}, cells...)...))
			total++
			found := 0
			for i, c := range cells {
				if c != "·" && c != "–" {
					in[i]++
					found = 1
				}
			}
			promised += found
		}
	}
	var sums []string
	for _, n := range in {
		sums = append(sums, fmt.Sprint(n))
	}
	fmt.Fprintf(&s, "\n## In all\n\n%s%s", head("mistakes"), row(append([]string{fmt.Sprint(total)}, sums...)...))
	fmt.Fprintf(&s, "\n%d of %d mistakes are detected in one way or another.\n", promised, total)
	return s.String()
}

// shortTable returns the README's table.
func shortTable(t *testing.T, vet map[string]string) string {
	all := map[string]program{}
	for _, f := range families {
		for _, p := range f.programs {
			all[p.mistake] = p
		}
	}
	s := head("mistake")
	for _, name := range short {
		p, ok := all[name]
		if !ok {
			t.Errorf("no program is called %q", name)
		}
		s += row(append([]string{name}, p.detects(vet)...)...)
	}
	return s
}

func (h how) String() string {
	if h.kind == notPromised {
		return "·"
	}
	return string(h.kind)
}

func TestTablesAreUpToDate(t *testing.T) {
	found := read(t, vetPath)
	_, rows := between(t, vetPath, found, "misuse")
	vet := map[string]string{}
	for line := range strings.Lines(rows) {
		if cells := strings.Split(line, " | "); len(cells) == 2 {
			vet[strings.TrimPrefix(cells[0], "| ")] = strings.TrimSuffix(cells[1], " |\n")
		}
	}
	if len(vet) < 100 {
		t.Errorf("%s has %d mistakes", vetPath, len(vet))
	}
	text := read(t, shortPath)
	old, _ := between(t, shortPath, text, "misuse")
	compare(t, tablePath, read(t, tablePath), table(vet))
	compare(t, shortPath, text, strings.Replace(text, old, marked("misuse", shortTable(t, vet)), 1))
}

// marked returns text between the named marks.
func marked(name, text string) string {
	return "<!-- " + name + " -->\n" + text + "<!-- end of " + name + " -->\n"
}

// between returns the text between the named marks of a page, with and without the marks.
func between(t *testing.T, path, page, name string) (with, without string) {
	t.Helper()
	begin, end, _ := strings.Cut(marked(name, "\x00"), "\x00")
	_, rest, ok := strings.Cut(page, begin)
	without, _, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no %s", path, name)
	}
	return begin + without + end, without
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Skip(err) // the sources are not available
	}
	return strings.ReplaceAll(string(text), "\r\n", "\n")
}

// compare checks that a page equals want, or with -update writes it.
func compare(t *testing.T, path, is, want string) {
	t.Helper()
	switch {
	case is == want:
	case !*update:
		t.Errorf("%s is not what the programs say: make misuse", path)
	default:
		if err := os.WriteFile(path, []byte(want), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// No two programs share a name.
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
