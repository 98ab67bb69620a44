// Monitor: a process that explains a fault which ended this one.
//
// A fault in a goroutine that did not ask for a panic ends the process. No code of it runs
// any more, but the runtime writes the crash text, to standard error and to the file of
// debug.SetCrashOutput. That is a pipe to the monitor, a process of the same program:
//
//	program   guards blocks, notes them in the log --shared memory--+
//	   |                                                            v
//	   +-- crash text, with the address --pipe--> monitor: finds the block
//	                                               prints it, with its stacks
//
// The monitor is the same program, so it has the same functions and lines. It is started with
// a name and an environment variable, which init of this package finds: it serves, and exits
// before main. Packages that are initialized before this one are so in the monitor too.
//
// If the program is process 1, the kernel kills the monitor with it, as all of a PID
// namespace. Then a socket is in the pipe's place, with a small buffer, so the dying process
// waits in its writes until the monitor has read, and the monitor reads little at a time and
// prints as soon as it knows the address. Else it says in a line what it is as soon as it knows
// that, which is near the head of the crash text, and prints the report in the end, behind the
// stacks of all goroutines.

// Package monitor starts a process that reports faults in guarded blocks.
package monitor

import (
	"bufio"
	"io"
	"strconv"
	"strings"

	"github.com/freehold-go/freehold/internal/guardlog"
)

const (
	maxLine = 4 << 10 // how much of a line is looked at
	maxRead = 64      // what is read at a time where the report must be printed at once
)

// faults are what a crash text has in front of the address, in hexadecimal. A panic that
// wraps a fault has the second form only.
var faults = [...]string{"unexpected fault address 0x", " addr=0x"}

// watch reads a crash text to its end, and prints to out what log knows of its address: all at
// once, or a line at once and all in the end.
func watch(in io.Reader, log *guardlog.Log, out io.Writer, atOnce bool) {
	report := ""
	if atOnce {
		in = pieces{in}
	}
	lines := bufio.NewReaderSize(in, maxLine)
	for {
		line, err := lines.ReadSlice('\n')
		if report == "" {
			if what, stacks := explain(string(line), log); what != "" {
				report = "\nfreehold: " + what + "\n" + stacks + "\n"
				if atOnce {
					io.WriteString(out, report)
				} else {
					io.WriteString(out, "\nfreehold: "+what+"; the goroutine that did it comes first, and the stacks of the block last\n")
				}
			}
		}
		if err != nil && err != bufio.ErrBufferFull {
			break
		}
	}
	if !atOnce {
		io.WriteString(out, report)
	}
}

// pieces reads maxRead bytes at a time.
type pieces struct{ io.Reader }

func (p pieces) Read(b []byte) (int, error) { return p.Reader.Read(b[:min(len(b), maxRead)]) }

// explain returns what the fault in a line of a crash text hit, and the stacks of that block.
func explain(line string, log *guardlog.Log) (what, stacks string) {
	for _, before := range faults {
		for rest := line; ; {
			_, after, found := strings.Cut(rest, before)
			if !found {
				break
			}
			rest = after
			addr, err := strconv.ParseUint(after[:hexDigits(after)], 16, 64)
			if err != nil {
				continue
			}
			if b, found := log.Find(uintptr(addr)); found {
				return b.Describe(uintptr(addr)), b.Stacks()
			}
		}
	}
	return "", ""
}

// hexDigits returns how many s begins with.
func hexDigits(s string) int { return len(s) - len(strings.TrimLeft(s, "0123456789abcdef")) }
