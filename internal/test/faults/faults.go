// Flags, and what all tests of this kind begin with.

//go:build linux

package faults

import (
	"flag"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

var (
	fillsFlag = flag.Int("fills", 60, "number of times that tests fill a disk")
	killsFlag = flag.Int("kills", 24, "number of times that tests kill a process")
	seedFlag  = flag.Uint64("seed", 1, "seed of all random choices; 0 chooses a new one for each run")
)

// Fills returns how often a test is to fill a disk: -fills, and less with -short.
func Fills() int { return times(*fillsFlag, 20) }

// Kills returns how often a test is to kill a process: -kills, and less with -short.
func Kills() int { return times(*killsFlag, 10) }

func times(n, short int) int {
	if testing.Short() {
		return min(n, short)
	}
	return n
}

// Seed returns -seed, or a random number if that is 0.
var Seed = sync.OnceValue(func() uint64 {
	if *seedFlag == 0 {
		return rand.Uint64()
	}
	return *seedFlag
})

// Random returns random numbers for round n of a test.
func Random(n int) *rand.Rand { return rand.New(rand.NewPCG(Seed(), uint64(n))) }

// Show shows how many rounds are done, if standard error is a terminal. After the last one it
// erases the line.
func Show(what string, done, all int) {
	if !isTerminal() {
		return
	}
	line := "\r\x1b[K"
	if done < all {
		line += what + " " + strconv.Itoa(done) + " of " + strconv.Itoa(all)
	}
	os.Stderr.WriteString(line)
}

var isTerminal = sync.OnceValue(func() bool {
	_, err := unix.IoctlGetTermios(int(os.Stderr.Fd()), unix.TCGETS)
	return err == nil && os.Getenv("TERM") != "dumb"
})
