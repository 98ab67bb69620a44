// Lines: six kinds of text, as a file.

package sorts

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/freehold-go/freehold/lab/bench/measure"
)

// A lineKind appends a line, without its end. i counts from 0 to n-1.
type lineKind struct {
	name string
	line func(line []byte, i, n uint64, rnd *measure.Random) []byte
}

var lineKinds = []lineKind{
	{"mixed", mixedLine},
	{"hex", func(line []byte, _, _ uint64, rnd *measure.Random) []byte { return appendHex(line, rnd, 6) }},
	{"prefix", func(line []byte, _, _ uint64, rnd *measure.Random) []byte {
		return appendHex(append(line, commonPrefix...), rnd, 1)
	}},
	{"distinct", distinctLine},
	{"sorted", func(line []byte, i, _ uint64, rnd *measure.Random) []byte { return numberedLine(line, i, rnd) }},
	{"reversed", func(line []byte, i, n uint64, rnd *measure.Random) []byte { return numberedLine(line, n-i, rnd) }},
}

var commonPrefix = strings.Repeat("/usr/share/doc/", 8)[:108]

// appendHex appends 8 random digits for each word.
func appendHex(line []byte, rnd *measure.Random, words int) []byte {
	var b [4]byte
	for range words {
		x := rnd.Next() >> 32
		b = [4]byte{byte(x), byte(x >> 8), byte(x >> 16), byte(x >> 24)}
		line = hex.AppendEncode(line, b[:])
	}
	return line
}

func numberedLine(line []byte, i uint64, rnd *measure.Random) []byte {
	const digits = 12
	number := strconv.AppendUint(nil, 1e11+i, 10)
	return appendHex(append(append(line, number[:digits]...), ' '), rnd, 4)
}

// distinctLine is one of 1,000 lines.
func distinctLine(line []byte, _, _ uint64, rnd *measure.Random) []byte {
	one := measure.Random(rnd.Next()%1000*2 + 1)
	for range 4 {
		one.Next() // the first numbers of neighbours are alike
	}
	return appendHex(append(line, "value "...), &one, 4)
}

var words = strings.Fields("memory sorting of lines that are larger than the machine takes a disk and some patience while " +
	"records move between blocks and every worker waits for pages cache index merge order stable quick brown fox")

// mixedLine is a line of a log, a URL, a sentence or a row of a table.
func mixedLine(line []byte, i, _ uint64, rnd *measure.Random) []byte {
	x := rnd.Next()
	word := func(shift int) string { return words[x>>shift%uint64(len(words))] }
	switch x >> 62 {
	case 0:
		line = fmt.Appendf(line, "2026-%02d-%02dT%02d:%02d:%02d ", 1+x%12, 1+x>>8%28, x>>16%24, x>>24%60, x>>32%60)
		line = append(append(line, "INFO "...), word(40)...)
		line = append(append(line, ": took "...), strconv.FormatUint(x>>20%10_000, 10)...)
		return append(line, " ms"...)
	case 1:
		line = append(append(line, "https://www.example.org/"...), word(8)...)
		line = append(append(append(line, '/'), word(20)...), "?id="...)
		return strconv.AppendUint(line, x>>30, 10)
	case 2:
		for j := range 4 + x%8 {
			line = append(append(line, word(int(3*j+2))...), ' ')
		}
		return append(line, word(50)...)
	}
	line = append(strconv.AppendUint(line, i, 10), ',')
	line = append(append(line, word(10)...), ',')
	line = strconv.AppendUint(line, x>>12%1_000_000, 10)
	return append(append(append(line, ",\""...), word(44)...), '"')
}

// file returns a file of such lines in a folder. It makes one if it is not there yet, and removes
// others, so that there is one at a time.
func (kind lineKind) file(dir string, bytes int64) string {
	path := filepath.Join(dir, fmt.Sprintf("lines-%s-%d", kind.name, bytes))
	if _, err := os.Stat(path); err == nil {
		return path
	}
	for _, other := range must(filepath.Glob(filepath.Join(dir, "lines-*"))) {
		must(0, os.Remove(other))
	}
	f := must(os.Create(path + ".part"))
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
	rnd := measure.Random(7)
	const most = 1 << 36 // lines; a number has twelve digits
	var line []byte
	for i, n := uint64(0), int64(0); n < bytes; i++ {
		line = append(kind.line(line[:0], i, most, &rnd), '\n')
		n += int64(len(line))
		must(w.Write(line))
	}
	must(0, w.Flush())
	must(0, f.Close())
	must(0, os.Rename(path+".part", path))
	return path
}
