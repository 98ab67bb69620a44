// Monitor: a second process that explains the fault which killed the first.
//
// A fault ends the process, unless its goroutine asked for a panic instead. No code of the
// program runs any more, but the runtime writes the crash text to standard error and to the
// file of debug.SetCrashOutput. Here that file is a pipe to the monitor:
//
//	program   guards blocks, notes them in the log --shared memory--+
//	   |                                                            v
//	   +-- crash text, with the address --pipe--> monitor: finds the block
//	                                               prints it, with its stacks
//
// The monitor runs the same executable, so it can print functions and lines. Its argument 0
// and an environment variable mark it. This package's init sees them, serves, and exits before
// main. Packages that are initialized earlier are initialized in the monitor too.
//
// The monitor prints a line as soon as it knows the address, near the head of the crash text.
// It prints the report at the end, behind the stacks of all goroutines.
//
// Process 1 is different: when it dies, the kernel kills its whole PID namespace, the monitor
// included. So process 1 uses a socket with a small buffer in place of the pipe. The monitor
// reads it in small pieces and prints the whole report as soon as it knows the address, while
// the dying process still waits in its writes.

// Package monitor starts a process that reports this one's fatal faults in guarded blocks.
package monitor

import (
	"bufio"
	"io"
	"strconv"
	"strings"

	"github.com/freehold-go/freehold/internal/guardlog"
)

const (
	maxLine = 4 << 10 // longer lines are searched in parts
	maxRead = 64      // bytes a read for process 1
)

// faults are the texts in front of the hexadecimal address in a crash text. A panic that wraps
// a fault has the second form only.
var faults = [...]string{"unexpected fault address 0x", " addr=0x"}

// watch reads a crash text to its end and reports the block at its address to out. If atOnce,
// it prints the report as soon as it has the address; otherwise a line then and the report at
// the end.
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

// pieces is a reader whose reads return at most maxRead bytes.
type pieces struct{ io.Reader }

func (p pieces) Read(b []byte) (int, error) { return p.Reader.Read(b[:min(len(b), maxRead)]) }

// explain looks for a fault's address in a line of a crash text. It describes the block there
// and returns the block's stacks, or empty strings.
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

// hexDigits returns the number of hexadecimal digits at the beginning of s.
func hexDigits(s string) int { return len(s) - len(strings.TrimLeft(s, "0123456789abcdef")) }
