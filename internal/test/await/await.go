// Package await makes tests wait until another goroutine blocks.
package await

import (
	"runtime"
	"strings"
)

// Lock waits until a goroutine inside the named function waits for a mutex or a WaitGroup. It
// reports false if done has an element before that.
func Lock(function string, done <-chan bool) bool {
	for stacks := make([]byte, 1<<20); len(done) == 0; runtime.Gosched() {
		for stack := range strings.SplitSeq(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
			status, calls, _ := strings.Cut(stack, "\n")
			if strings.Contains(status, "[sync.") && strings.Contains(calls, function+"(") {
				return true
			}
		}
	}
	return false
}
