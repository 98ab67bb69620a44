// Text: the page for terminals.

package web

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/freehold-go/freehold"
)

// Text returns the snapshot as tables for a terminal of the given width; 0 means any width. A
// wider table continues below, with its first column again. With an earlier snapshot of the same
// process, counters are rates per second between the two; otherwise they count from the start. A
// name with characters that do not print is quoted. Names are cut at 1,000 characters; in tables
// at 100 or half of the width, but not below 20.
func (s *Snapshot) Text(before *Snapshot, width int) string {
	since := interval{&Snapshot{}, "", 1}
	if before != nil && before.PID == s.PID && before.Started.Equal(s.Started) && s.Time.After(before.Time) {
		since = interval{before, "/s", s.Time.Sub(before.Time).Seconds()}
	}
	b := text{width: width}
	b.printf("%s, pid %d, %s, up %v, %s\n", s.Program, s.PID, s.Go,
		s.Time.Sub(s.Started).Round(time.Second), s.Time.Format("2006-01-02 15:04:05"))
	total := s.Total()
	b.printf("off-heap %s live, at most %s resident; Go %s", Size(total.LiveBytes), Size(total.Resident), Size(s.GoMemory))
	if s.Resident > 0 {
		b.printf("; the process %s resident", Size(s.Resident))
	}
	b.printf("\n")
	if s.Slow != "" {
		b.printf("%s\n", s.Slow)
	}
	b.printf("\n")
	if t, problem := s.budgetTable(); t != nil {
		b.table(t)
		if problem != "" {
			b.printf("%s\n", problem)
		}
		b.printf("\n")
	}
	b.table(s.heapTable(since))
	for _, t := range []table{s.accountTable(since), s.cacheTable(since), s.tagTable(since), s.guardTable()} {
		if t != nil {
			b.printf("\n")
			b.table(t)
		}
	}
	for _, st := range s.Heaps {
		if len(st.Classes) > 0 {
			b.printf("\nBlock sizes of %s\n\n", st.Name)
			b.table(classTable(st))
		}
	}
	s.stackText(&b)
	return b.String()
}

// interval is the time of the counters in a text.
type interval struct {
	before  *Snapshot // empty for the time since the start
	per     string    // the suffix of their names: /s, or nothing
	seconds float64
}

// rise returns how much a counter rose per second, or since the start.
func (i interval) rise(now, was uint64) int {
	return int(math.Round(float64(more(now, was)) / i.seconds))
}

// more returns how much a counter rose.
func more(now, was uint64) uint64 {
	if now < was { // a heap, an account or a cache of that name was closed
		was = 0
	}
	return now - was
}

// earlier returns the element of an earlier list for which is is true, or a zero one.
func earlier[S any](all []S, is func(S) bool) (found S) {
	if i := slices.IndexFunc(all, is); i >= 0 {
		found = all[i]
	}
	return found
}

// limit writes a limit; 0 means none.
func limit(bytes int64) string {
	if bytes == 0 {
		return "-"
	}
	return size(bytes)
}

func (s *Snapshot) heapTable(since interval) table {
	t := table{{"heap", "live", "blocks", "resident", "fragm.", "committed", "limit",
		"slow allocs" + since.per, "slow frees" + since.per, "refused" + since.per, "purged" + since.per}}
	for _, st := range s.Heaps {
		was := earlier(since.before.Heaps, func(old freehold.Stats) bool { return old.Name == st.Name })
		t = append(t, []string{st.Name, Size(st.LiveBytes), thousands(st.Live), Size(st.Resident), percent(Fragmentation(st)), Size(st.Committed), limit(int64(st.MaxBytes)),
			thousands(since.rise(st.SlowAllocs, was.SlowAllocs)), thousands(since.rise(st.SlowFrees, was.SlowFrees)),
			thousands(since.rise(st.Refusals, was.Refusals)), Size(since.rise(st.PurgedBytes, was.PurgedBytes))})
	}
	return t
}

func classTable(st freehold.Stats) table {
	t := table{{"", "block size", "live", "in caches", "free", "spans", "live bytes"}}
	for _, c := range st.Classes {
		t = append(t, []string{"", thousands(c.BlockSize), thousands(c.Live), thousands(c.Cached), thousands(c.Free), thousands(c.Spans), Size(c.Live * c.BlockSize)})
	}
	if st.Large > 0 {
		t = append(t, []string{"", "larger", thousands(st.Large), "-", "-", "-", Size(st.LargeBytes)})
	}
	return t
}

func (s *Snapshot) stackText(b *text) {
	if len(s.Stacks) == 0 {
		return
	}
	if s.SampleRate == 1 {
		b.printf("\nIn use by call stack\n")
	} else {
		b.printf("\nIn use by call stack, estimated from one in %s bytes\n", thousands(s.SampleRate))
	}
	for _, st := range s.Stacks {
		blocks := "blocks"
		if st.Blocks == 1 {
			blocks = "block"
		}
		b.printf("\n%s in %s %s of %s", Size(int(st.Bytes)), thousands(int(st.Blocks)), blocks, st.Heap)
		if st.Tag != "" {
			b.printf(", tag %s", st.Tag)
		}
		if st.Through != "" {
			b.printf(" through %s", st.Through)
		}
		b.printf("\n")
		for _, c := range st.Callers {
			b.printf("    %s  %s:%d\n", c.Function, c.File, c.Line)
		}
	}
}

// A table has a head and rows of the same length. The first column is flush left, numbers flush
// right.
type table [][]string

// text collects the output for a terminal. All of it passes printf and table, which quote names:
// they may come from an untrusted process.
type text struct {
	strings.Builder
	width int // of the terminal; 0 if any is fine
}

const (
	longestName = 1000 // characters
	longestCell = 100
)

// printf is fmt.Fprintf with its strings quoted.
func (b *text) printf(format string, args ...any) {
	for i, arg := range args {
		if s, is := arg.(string); is {
			args[i] = printable(s, longestName)
		}
	}
	fmt.Fprintf(b, format, args...)
}

// table writes a table in parts that fit the width. Each part repeats the first column.
func (b *text) table(t table) {
	longest := longestCell // of the first column; figures are never as long
	if b.width > 0 {
		longest = min(longest, max(b.width/2, 20))
	}
	widths := make([]int, len(t[0]))
	for _, row := range t {
		row[0] = printable(row[0], longest)
		for i := range row {
			row[i] = printable(row[i], longestCell)
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
	}
	for from := 1; from < len(widths); {
		to, used := from, widths[0]
		for to < len(widths) && (to == from || b.width <= 0 || used+2+widths[to] <= b.width) {
			used += 2 + widths[to]
			to++
		}
		if from > 1 {
			b.WriteString("\n")
		}
		for _, row := range t {
			line := pad(row[0], -widths[0])
			for i := from; i < to; i++ {
				line += "  " + pad(row[i], widths[i])
			}
			b.WriteString(strings.TrimRight(line, " ") + "\n")
		}
		from = to
	}
}

// pad pads a cell to a width: on the left, or on the right if width is negative.
func pad(cell string, width int) string { return fmt.Sprintf("%*s", width, cell) }

// printable quotes a name that could control a terminal, and cuts it to longest characters.
func printable(name string, longest int) string {
	if len(name) > longest && utf8.RuneCountInString(name) > longest {
		end := 0
		for range longest - 1 {
			_, n := utf8.DecodeRuneInString(name[end:])
			end += n
		}
		name = name[:end] + "…"
	}
	if strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(name)
	}
	return name
}

func percent(part float64) string { return strconv.Itoa(int(math.Round(part*100))) + "%" }

// thousands writes a number with a comma after each three digits.
func thousands(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// Size writes bytes in the unit of 1,024 that leaves three digits: "1.25 MiB".
func Size(n int) string { return size(int64(n)) }

// size is Size for numbers that may not fit an int.
func size(n int64) string {
	if n < 1024 {
		return strconv.FormatInt(n, 10) + " B"
	}
	value, unit := float64(n)/1024, 0
	for value >= 999.5 && unit < 5 {
		value /= 1024
		unit++
	}
	digits := 2
	switch {
	case value >= 99.95:
		digits = 0
	case value >= 9.995:
		digits = 1
	}
	return strconv.FormatFloat(value, 'f', digits, 64) + " " + string("KMGTPE"[unit]) + "iB"
}
