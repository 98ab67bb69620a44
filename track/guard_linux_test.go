//go:build !race

package track_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// run runs a program that makes one mistake and returns its output. It adds the exit state if
// the program failed or printed nothing.
func run(program, mistake string, env ...string) string {
	return output(command(mistake, program, env...))
}

func output(cmd *exec.Cmd) string {
	out, err := cmd.CombinedOutput()
	if err != nil || len(out) == 0 {
		return fmt.Sprintf("%s\n%v, %v", out, cmd.ProcessState, err)
	}
	return string(out)
}

// command returns a command whose program makes one mistake.
func command(mistake, name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name)
	cmd.Env = append(os.Environ(), "FREEHOLD_DEBUG=guard", "TRACK_MISTAKE="+mistake)
	for _, arg := range args {
		if strings.Contains(arg, "=") {
			cmd.Env = append(cmd.Env, arg)
		} else {
			cmd.Args = append(cmd.Args, arg)
		}
	}
	return cmd
}

const (
	madeAt  = `allocated at:\n\S+track_test\.makeBlock\n\S+mistake_linux_test\.go:34\n\S+track_test\.makeMistake\n(.*\n)*?`
	freedAt = `freed at:\n\S+track_test\.freeBlock\n\S+mistake_linux_test\.go:42\n\S+track_test\.makeMistake\n`
	ofBlock = `of a block of 64 bytes of heap "index"\n`
)

var mistakes = []struct {
	name  string
	wants []string // expressions, in this order
}{
	{"read", []string{`unexpected fault address`, `makeMistake`, `\nfreehold: use after free at 0x\w+: byte 8 ` + ofBlock + madeAt + freedAt}},
	{"program", []string{`use after free at 0x\w+: byte 8 ` + ofBlock + madeAt + freedAt}},
	{"write", []string{`unexpected fault address`, `use after free at 0x\w+: byte 8 ` + ofBlock + madeAt + freedAt}},
	{"goroutine", []string{`unexpected fault address`, `makeMistake\.func`, `use after free at 0x\w+: byte 8 ` + ofBlock + madeAt + freedAt}},
	{"copy", []string{`memmove`, `use after free at 0x\w+: byte \d+ ` + ofBlock + madeAt + freedAt}},
	{"overflow", []string{`unexpected fault address`, `\nfreehold: overflow at 0x\w+: 1 byte past the end ` + ofBlock + madeAt}},
	{"overflow in copy", []string{`memmove`, `overflow at 0x\w+: \d+ bytes? past the end ` + ofBlock + madeAt}},
	{"underflow", []string{`unexpected fault address`, `underflow at 0x\w+: 8000 bytes before the beginning ` + ofBlock + madeAt}},
	{"underflow by one", []string{`panic: freehold: Heap\.Free: .*underflow at 0x\w+: 1 byte before the beginning ` + ofBlock + madeAt, `goroutine 1`}},
	{"panic", []string{`panic: `, ` addr=0x`, `use after free at 0x\w+: byte 8 ` + ofBlock + madeAt + freedAt}},
	{"recovered", []string{`^use after free at 0x\w+: byte 8 ` + ofBlock + madeAt + freedAt + `(.*\n)*.* true\n$`}},
	{"EFAULT", []string{`^use after free at 0x\w+: byte 0 ` + ofBlock + madeAt + freedAt + `(.*\n)*.* true\n$`}},
	{"kept View", []string{`use after free at 0x\w+: byte 8 of a block of 64 bytes of heap "cache, lent values"\n` +
		`allocated through cache\.\(\*Cache\)\.View at:\n\S+track_test\.makeMistake\n(.*\n)*?freed through cache\.\(\*Cache\)\.View at:\n\S+track_test\.makeMistake\n`}},
	{"double free", []string{`panic: freehold: Heap\.Free: .*double free.*\n` + madeAt + freedAt, `goroutine 1`}},
	{"closed", []string{`unexpected fault address`, `use after Close of the heap at 0x\w+: byte 8 ` + ofBlock + madeAt}},
}

func mustMatch(t *testing.T, out string, wants ...string) {
	t.Helper()
	rest := regexp.MustCompile(`(?m)^\t+`).ReplaceAllString(out, "")
	for _, want := range wants {
		at := regexp.MustCompile(want).FindStringIndex(rest)
		if at == nil {
			t.Errorf("want %s, in %s", want, out)
			return
		}
		rest = rest[at[1]:]
	}
}

// Each mistake is reported with the block and the stacks of its allocation and Free.
func TestGuardReports(t *testing.T) {
	for _, m := range mistakes {
		for _, modes := range []string{"guard", "guard,poison,leak"} {
			t.Run(m.name+"/"+modes, func(t *testing.T) {
				if m.name == "program" {
					modes = ""
				}
				mustMatch(t, run(os.Args[0], m.name, "FREEHOLD_DEBUG="+modes), m.wants...)
			})
		}
	}
	for _, name := range []string{"none", "nil"} {
		if out := run(os.Args[0], name); strings.Contains(out, "freehold: ") {
			t.Errorf("%s: %s", name, out)
		}
	}
}

// Reports need no symbols of the program, no fixed address of it, and no stacks in the crash
// text.
func TestGuardReportsOfOtherBuilds(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil || testing.Short() {
		t.Skip("it builds this package in other ways")
	}
	program := filepath.Join(t.TempDir(), "program")
	out, err := exec.Command("go", "test", "-c", "-buildmode=pie", "-trimpath", "-ldflags=-s -w", "-o", program).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for range 5 { // load addresses of a PIE
		mustMatch(t, run(program, "read", "GOTRACEBACK=none"), `\nfreehold: use after free at 0x\w+: byte 8 `+ofBlock+madeAt+freedAt)
	}
}

// When process 1 of a PID namespace ends, the kernel kills the whole namespace.
func TestGuardReportOfProcessOne(t *testing.T) {
	inside := []string{"--user", "--pid", "--fork", "--mount-proc", os.Args[0]}
	if err := command("none", "unshare", inside...).Run(); err != nil {
		t.Skip("no namespaces: ", err)
	}
	for range 10 {
		mustMatch(t, output(command("read", "unshare", inside...)), `\nfreehold: use after free at 0x\w+: byte 8 `+ofBlock+madeAt+freedAt)
	}
}

// Where no process can be started, guards still work. The program says once that it has no
// reports.
func TestGuardsWithoutMonitor(t *testing.T) {
	out, err := command("recovered", "unshare", "--user", "--map-root-user", "--mount", "sh", "-c", "mount -t tmpfs none /proc && exec "+os.Args[0]).CombinedOutput()
	if err != nil {
		t.Skip("no namespaces: ", err)
	}
	mustMatch(t, string(out), `^freehold: FREEHOLD_DEBUG: guard: faults are not explained: .*\nuse after free at`)
}
