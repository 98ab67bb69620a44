// Loads of sorting: records in memory, buffers, and lines from file to file. The
// loops are in sorter/.

package bench

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/dustin/go-humanize"
)

// lineKinds are the kinds of lines that sorter/ makes.
var lineKinds = []struct{ name, column string }{
	{"mixed", "logs, URLs, text, tables"},
	{"hex", "random hex"},
	{"prefix", "108 B in common"},
	{"distinct", "1,000 distinct"},
	{"sorted", "sorted"},
	{"reversed", "reversed"},
}

// sortLoads returns the loads of sorter/.
func sortLoads(s scale) (all []load) {
	parallel := []string{"-parallel", itoa(runtime.NumCPU())}
	add := func(l load, args ...string) {
		l.special, l.rounds, l.args = true, 3, append(args, parallel...)
		all = append(all, l)
	}
	// besides adds another figure of the last load.
	besides := func(l load, name, table string, u unit) {
		l.of, l.key, l.bench, l.table, l.unit = l.key, l.key+"-"+name, l.bench+"/figure="+name, table, u
		add(l)
	}

	sorted := fmt.Sprintf("%s records sorted, ms", humanize.Comma(int64(s.records)))
	extra, most := "the same: memory that the sort took, per byte of the records with their frames", "the same: MB resident at most"
	for _, how := range []struct{ key, load, column string }{
		{"24", "sort24", "24 B, number of 8"},
		{"24-bytes", "sort24-bytes", "24 B, 8 bytes"},
		{"24-cmp", "sort24-cmp", "24 B, comparison"},
		{"framed", "framed", "8 to 64 B, framed"},
	} {
		l := load{key: "sort/" + how.key, bench: "Sort/records=" + how.key, table: sorted, column: how.column, unit: whole}
		add(l, "-load", how.load, "-records", itoa(s.records))
		besides(l, "extra", extra, resident)
		besides(l, "peak", most, peak)
	}
	for _, how := range []struct{ key, load, column string }{
		{"16", "append", "framed"},
		{"16-fixed", "append-fixed", "all of one size"},
	} {
		l := load{
			key: "append/" + how.key, bench: "Append/records=" + how.key,
			table: fmt.Sprintf("%s records of 16 B appended, ns each", humanize.Comma(int64(s.appended))), column: how.column,
		}
		add(l, "-load", how.load, "-records", itoa(s.appended))
	}
	for i, top := range s.grown {
		l := load{
			key: "buffer/grow", bench: "BufferGrow", huge: i > 0, unit: whole,
			table: "a buffer that grows from 1 MiB, all of it written to: ms in the calls that grow", column: "to " + bytesText(top),
		}
		if i > 0 { // z.Buffer copies, and would take three times as much memory
			l.key, l.bench = l.key+"-full", l.bench+"/full"
		}
		add(l, "-load", "grow", "-top", itoa(top))
		besides(l, "memory", "the same: bytes resident at most, per byte of the buffer", resident)
	}

	table := fmt.Sprintf("%s of lines sorted with -S %s, from file to file: ms",
		strings.Replace(humanize.Bytes(uint64(s.lines)), ".0 ", " ", 1), bytesText(s.sortMemory))
	for _, kind := range lineKinds {
		l := load{
			key: "lines/" + kind.name, bench: "SortLines/kind=" + kind.name, table: table, column: kind.column,
			unit: whole, huge: true, disk: true,
		}
		add(l, "-load", "lines", "-kind", kind.name, "-bytes", itoa(s.lines), "-memory", itoa(s.sortMemory))
		besides(l, "peak", "the same: MB resident at most, without the pages of files", peak)
		besides(l, "limit", "the same: resident bytes per byte of -S plus 64 MiB", resident)
	}
	return all
}
