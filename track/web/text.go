// Text: the page for terminals.

package web

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/freehold-go/freehold"
)

// Text returns the snapshot as tables for a terminal. With an earlier snapshot of the same
// process, it has what happened per second between them instead of since the start.
func (s *Snapshot) Text(before *Snapshot) string {
	if before != nil && (before.PID != s.PID || !before.Started.Equal(s.Started) || !s.Time.After(before.Time)) {
		before = nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s, pid %d, %s, up %v, %s\n", printable(s.Program), s.PID, s.Go,
		s.Time.Sub(s.Started).Round(time.Second), s.Time.Format("2006-01-02 15:04:05"))
	total := s.Total()
	fmt.Fprintf(&b, "off-heap %s live, at most %s resident; Go %s", Size(total.LiveBytes), Size(total.Resident), Size(s.GoMemory))
	if s.Resident > 0 {
		fmt.Fprintf(&b, "; the process %s resident", Size(s.Resident))
	}
	b.WriteString("\n")
	if s.Slow != "" {
		b.WriteString(printable(s.Slow) + "\n")
	}
	b.WriteString("\n")
	if t, problem := s.budgetTable(); t != nil {
		t.write(&b)
		if problem != "" {
			b.WriteString(printable(problem) + "\n")
		}
		b.WriteString("\n")
	}
	s.heapTable(before).write(&b)
	for _, t := range []table{s.accountTable(before), s.tagTable(before), s.guardTable()} {
		if t != nil {
			b.WriteString("\n")
			t.write(&b)
		}
	}
	for _, st := range s.Heaps {
		if len(st.Classes) > 0 {
			fmt.Fprintf(&b, "\nBlock sizes of %s\n\n", printable(st.Name))
			classTable(st).write(&b)
		}
	}
	s.stackText(&b)
	return b.String()
}

func (s *Snapshot) heapTable(before *Snapshot) table {
	per := "" // since the start
	if before != nil {
		per = "/s"
	}
	t := table{{"heap", "live", "blocks", "resident", "fragm.", "committed", "limit", "slow allocs" + per, "slow frees" + per, "refused" + per, "purged" + per}}
	for _, st := range s.Heaps {
		limit := "-"
		if st.MaxBytes > 0 {
			limit = Size(st.MaxBytes)
		}
		row := []string{printable(st.Name), Size(st.LiveBytes), thousands(st.Live), Size(st.Resident), percent(Fragmentation(st)), Size(st.Committed), limit}
		t = append(t, append(row, rates(st, s, before)...))
	}
	return t
}

// rates returns the counters of a heap, or how much they rose per second.
func rates(st freehold.Stats, now, before *Snapshot) []string {
	seconds := 1.0
	var was freehold.Stats
	if before != nil {
		seconds = now.Time.Sub(before.Time).Seconds()
		was, _ = before.Heap(st.Name)
	}
	return []string{
		thousands(rise(st.SlowAllocs, was.SlowAllocs, seconds)),
		thousands(rise(st.SlowFrees, was.SlowFrees, seconds)),
		thousands(rise(st.Refusals, was.Refusals, seconds)),
		Size(rise(st.PurgedBytes, was.PurgedBytes, seconds)),
	}
}

// rise returns how much a counter rose per second.
func rise(now, was uint64, seconds float64) int {
	if now < was { // a heap or an account of that name was closed
		was = 0
	}
	return int(math.Round(float64(now-was) / seconds))
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

func (s *Snapshot) stackText(b *strings.Builder) {
	if len(s.Stacks) == 0 {
		return
	}
	fmt.Fprintf(b, "\nIn use by call stack, estimated from one block in %s\n", Size(s.SampleRate))
	for _, st := range s.Stacks {
		blocks, through := "blocks", ""
		if st.Blocks == 1 {
			blocks = "block"
		}
		if st.Through != "" {
			through = " through " + st.Through
		}
		fmt.Fprintf(b, "\n%s in %s %s of %s%s\n", Size(int(st.Bytes)), thousands(int(st.Blocks)), blocks, printable(st.Heap), through)
		for _, c := range st.Callers {
			fmt.Fprintf(b, "    %s  %s:%d\n", c.Function, c.File, c.Line)
		}
	}
}

// A table has a head and rows of as many cells: the first to the left, numbers to the right.
type table [][]string

func (t table) write(b *strings.Builder) {
	widths := make([]int, len(t[0]))
	for _, row := range t {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range t {
		var line strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				line.WriteString(cell + pad)
			} else {
				line.WriteString("  " + pad + cell)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}

// printable returns a name without what would change a terminal.
func printable(name string) string {
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

// size is Size for what may be larger than the addresses of a process.
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
