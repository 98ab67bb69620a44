// Loads of containers: maps, ordered maps and interned strings. The loops are in
// keyed/.

package bench

import (
	"fmt"
	"strings"

	"github.com/dustin/go-humanize"
)

// keyedLoads returns the loads of keyed/.
func keyedLoads(s scale) (all []load) {
	add := func(key, name, table, column string, u unit, entries int, args ...string) {
		all = append(all, load{
			key: key, bench: "Keyed/load=" + strings.ReplaceAll(key, "/", "/how="), table: table, column: column, unit: u,
			special: true, rounds: 3, huge: entries > s.entries,
			args: append([]string{"-load", name, "-entries", itoa(entries)}, args...),
		})
	}
	entries := humanize.Comma(int64(s.entries))
	held := "bytes resident per entry"

	numbers := entries + " entries of uint64 to uint64, ns an operation"
	add("numbers/insert", "numbers-insert", numbers, "insert, from empty", nanoseconds, s.entries)
	add("numbers/hit", "numbers-hit", numbers, "get, there", nanoseconds, s.entries)
	add("numbers/miss", "numbers-miss", numbers, "get, not there", nanoseconds, s.entries)
	add("numbers/many", "numbers-many", numbers, "get 16 at once, each", nanoseconds, s.entries)
	add("numbers/churn", "numbers-churn", numbers, "delete and insert", nanoseconds, s.entries)
	add("numbers/worst", "numbers-worst", numbers, "the slowest insert", nanoseconds, s.entries)
	add("numbers/held", "numbers-held", "the same: "+held, "grown from empty", resident, s.entries)

	texts := entries + " entries of strings of 16 B, copied, to 16 B: ns an operation"
	add("strings/insert", "strings-insert", texts, "insert, from empty", nanoseconds, s.entries)
	add("strings/hit", "strings-hit", texts, "get, there", nanoseconds, s.entries)
	add("strings/miss", "strings-miss", texts, "get, not there", nanoseconds, s.entries)
	add("strings/held", "strings-held", "the same: "+held, "grown from empty", resident, s.entries)
	collected := "a forced collection while strings are live, ms"
	add("strings/collect", "strings-collect", collected, entries, whole, s.entries)
	add("strings/collect-full", "strings-collect", collected, humanize.Comma(int64(s.collected)), whole, s.collected)

	for i, n := range s.shared {
		name := [...]string{"small", "large"}[i]
		add("shared/"+name, "shared", "two goroutines: 90% get, of which half are there, 5% put, 5% delete; ns an operation",
			humanize.Comma(int64(n))+" entries", nanoseconds, n, "-warm", itoa(s.run.Milliseconds()), "-run", itoa(5*s.run.Milliseconds()))
	}

	ordered := entries + " entries of uint64 to uint64 in order, ns an entry"
	add("ordered/insert", "ordered-insert", ordered, "insert at random", nanoseconds, s.entries)
	add("ordered/get", "ordered-get", ordered, "get", nanoseconds, s.entries)
	add("ordered/scan", "ordered-scan", ordered, "scan", nanoseconds, s.entries)
	add("ordered/churn", "ordered-churn", ordered, "delete and insert", nanoseconds, s.entries)
	add("ordered/held", "ordered-held", "the same: "+held, "grown from empty", resident, s.entries)

	interned := fmt.Sprintf("%s strings of 16 B interned, ns a string", humanize.Comma(int64(s.entries/2)))
	add("intern/new", "intern-new", interned, "new", nanoseconds, s.entries/2)
	add("intern/known", "intern-known", interned, "known", nanoseconds, s.entries/2)
	add("intern/held", "intern-held", "the same: "+held, "all", resident, s.entries/2)
	return all
}
