// Planted mistakes: a program that is built and run like a user's, and the report of each mode
// with file and line.

package misuse

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestPlantedMistakesAreReportedWithTheirLine(t *testing.T) {
	const source = "planted/main.go"
	text, err := os.ReadFile(source)
	if _, err2 := exec.LookPath("go"); err != nil || err2 != nil || race || asan || modeHere != "" {
		t.Skip("builds programs: the plain build of these tests does, where the sources are and the go command")
	}
	programs := map[string]string{}
	for _, flags := range []string{"", "-race"} {
		if flags != "" && testing.Short() {
			continue
		}
		program := filepath.Join(t.TempDir(), "planted.exe")
		args := append([]string{"build", "-tags", "planted", "-o", program}, strings.Fields(flags)...)
		if out, err := exec.Command("go", append(args, "./planted")...).CombinedOutput(); err != nil {
			t.Logf("no build with %q: %v\n%s", flags, err, out)
			continue
		}
		programs[flags] = program
	}
	if programs[""] == "" {
		t.Fatal("no program")
	}
	for _, tt := range []struct {
		mistake, flags, mode string
		want                 string
	}{
		{"double free", "", "", "panic: freehold: Heap.Free: "},
		{"interior free", "", "", "points 16 bytes into a block of 100 bytes"},
		{"use after free", "", "guard", "freehold: use after free at 0x"},
		{"late write", "", "poison", `panic: freehold: heap "planted": byte 0 of the block of 100 bytes at `},
		{"overflow", "", "guard", "1 byte past the end of a block of 100 bytes"},
		{"overflow found by Free", "", "poison", "was written 1 byte beyond its end"},
		{"leak", "", "leak", `1 block, 100 bytes of heap "planted", allocated at:`},
		{"Go pointer", "", "leak", `heap "planted": byte 8 of the block of 100 bytes at `},
		{"data race", "-race", "", "WARNING: DATA RACE"},
	} {
		t.Run(tt.mistake, func(t *testing.T) {
			program, built := programs[tt.flags]
			if !built {
				t.Skip("there is no build with " + tt.flags)
			}
			if tt.mode == "guard" && runtime.GOOS != "linux" {
				t.Skip("faults are explained on Linux alone")
			}
			cmd := exec.Command(program, tt.mistake)
			cmd.Env = append(os.Environ(), modeVariable+"="+tt.mode)
			out, err := cmd.CombinedOutput() // some programs end with a status of failure
			line := fmt.Sprintf("main.go:%d", lineOf(t, string(text), "// "+tt.mistake+"\n"))
			if !strings.Contains(string(out), tt.want) || !strings.Contains(string(out), line+"\n") && !strings.Contains(string(out), line+" ") {
				t.Errorf("want %q and %s; %v:\n%s", tt.want, line, err, out)
			}
		})
	}
}

// lineOf returns the number of the line with a mark.
func lineOf(t *testing.T, text, mark string) int {
	before, _, ok := strings.Cut(text, mark)
	if !ok {
		t.Fatalf("no line is marked %q", mark)
	}
	return strings.Count(before, "\n") + 1
}
