// Full disks, and kills, of the process that freehold sort is.

//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"github.com/freehold-go/freehold/internal/test/faults"
	"github.com/freehold-go/freehold/internal/test/filetest"
)

// linesFor returns lines of about the given number of bytes, and the same lines sorted.
func linesFor(r *rand.Rand, size int) (text, sorted []byte) {
	var lines []string
	for at := 0; at < size; {
		line := fmt.Sprintf("%x\n", faults.Noise()[r.IntN(len(faults.Noise())/2):][:r.IntN(40)])
		lines = append(lines, line)
		at += len(line)
	}
	text = []byte(strings.Join(lines, ""))
	slices.Sort(lines)
	return text, []byte(strings.Join(lines, ""))
}

// sortProcess is the command in a process of its own.
func sortProcess(t *testing.T, args ...string) *exec.Cmd {
	cmd := faults.Self(t, append([]string{"sort"}, args...)...)
	cmd.Stderr = &bytes.Buffer{}
	return cmd
}

// Where there is no room the command says so, with status 2, and leaves everything as
// it was.
func TestSortFillsADisk(t *testing.T) {
	if faults.Isolated(t) {
		fillBySorts(t, faults.NewDisk(t))
	}
}

func TestSortFillsUpToAFileSize(t *testing.T) {
	if faults.Restricted(t) {
		fillBySorts(t, faults.NewSizeLimit(t))
	}
}

func fillBySorts(t *testing.T, room *faults.Room) {
	start := time.Now()
	fills, rounds := 0, 0
	for ; fills < faults.Fills()/4 && !t.Failed(); rounds++ {
		if fillBySort(t, room, faults.Random(rounds)) {
			fills++
		}
		if t.Failed() {
			t.Fatalf("round %d: -seed %d", rounds, faults.Seed())
		}
		faults.Show("fills", fills, faults.Fills()/4)
	}
	t.Logf("%-20s %5d fills %6.1f s, and %d sorts for which there was room", "freehold sort", fills, time.Since(start).Seconds(), rounds-fills)
}

// fillBySort sorts, and reports whether there was no room.
func fillBySort(t *testing.T, room *faults.Room, r *rand.Rand) bool {
	text, sorted := linesFor(r, 300_000+r.IntN(1_200_000))
	in, out := filepath.Join(t.TempDir(), "in"), filepath.Join(room.Dir, "out")
	room.Limit(t, 1<<30)
	filetest.Must(t, os.WriteFile(in, text, 0o600))
	var old []byte
	if r.IntN(2) == 0 {
		old = faults.Noise()[:5000]
		filetest.Must(t, os.WriteFile(out, old, 0o600))
	}
	defer os.Remove(out)
	cmd := sortProcess(t, "-S", fmt.Sprint(256<<r.IntN(3)), "--parallel", fmt.Sprint(1+r.IntN(2)), "-T", room.Dir, in)
	toStdout := r.IntN(4) == 0
	if toStdout {
		f := freehold.Must(os.Create(out))
		defer f.Close()
		cmd.Stdout = f
	} else {
		cmd.Args = append(cmd.Args, "-o", out)
	}
	room.Limit(t, 16<<10+r.IntN(2*len(text)))
	err := cmd.Run()
	said := fmt.Sprint(cmd.Stderr)
	full := err != nil
	switch {
	case !full:
		old = sorted
	case cmd.ProcessState.ExitCode() != cli.Misused || strings.Count(said, "\n") != 1 || !strings.Contains(said, room.Full.Error()):
		t.Errorf("%v: %q", cmd.ProcessState, said)
	}
	if !full || !toStdout {
		wantFile(t, out, old)
	}
	wantFile(t, in, text)
	room.WantEmpty(t, "out")
	filetest.Must(t, os.Remove(in))
	return full
}

// wantFile checks a file's contents; nil means that there is none.
func wantFile(t *testing.T, name string, want []byte) {
	t.Helper()
	got, err := os.ReadFile(name)
	if err != nil && !(want == nil && errors.Is(err, fs.ErrNotExist)) {
		t.Error(err)
	}
	faults.Same(t, name, got, want)
}

// phases are the phases of a sort, as its open files show them.
var phases = []string{"starting", "reading", "sorting", "writing", "naming", "over"}

// phaseOf returns the phase of a process that sorts the file in. The result is in dir and has
// the given size.
func phaseOf(pid int, in, dir string, size int) int {
	fds := fmt.Sprintf("/proc/%d/fd/", pid)
	open, err := os.ReadDir(fds)
	if err != nil || len(open) == 0 {
		return 5
	}
	phase := 0
	for _, fd := range open {
		to, _ := os.Readlink(fds + fd.Name())
		if to == in {
			return 1
		}
		if strings.HasPrefix(to, dir+"/") {
			phase = 2
			if info, err := os.Stat(fds + fd.Name()); err == nil && info.Size() >= int64(size) {
				return 4
			} else if err == nil && info.Size() > 0 {
				return 3
			}
		}
	}
	return phase
}

// Whenever a sort is killed, its input is as it was, its output the old one or
// complete, and no temporary file is left.
func TestKillsOfASort(t *testing.T) {
	temp, dir, inDir := t.TempDir(), t.TempDir(), t.TempDir()
	in, out := filepath.Join(inDir, "in"), filepath.Join(dir, "out")
	start := time.Now()
	kills := make([]int, len(phases))
	complete, named := 0, 0
	var text, sorted []byte
	for n := range faults.Kills() {
		r := faults.Random(n)
		if n%20 == 0 {
			text, sorted = linesFor(r, 500_000+r.IntN(3_000_000))
			filetest.Must(t, os.WriteFile(in, text, 0o600))
		}
		var old []byte
		if r.IntN(2) == 0 {
			old = faults.Noise()[:5000]
			filetest.Must(t, os.WriteFile(out, old, 0o600))
		}
		cmd := sortProcess(t, "-S", fmt.Sprint(256<<r.IntN(3)), "--parallel", fmt.Sprint(1+r.IntN(2)), "-T", temp, "-o", out, in)
		filetest.Must(t, cmd.Start())
		phase := 0
		for want := n % (len(phases) - 1); phase < want; {
			phase = phaseOf(cmd.Process.Pid, in, dir, len(sorted))
		}
		time.Sleep(time.Duration(r.IntN(1<<r.IntN(13))) * time.Microsecond)
		kills[phaseOf(cmd.Process.Pid, in, dir, len(sorted))]++
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if s := cmd.ProcessState.Sys().(syscall.WaitStatus); s.Signal() != syscall.SIGKILL && !s.Exited() {
			t.Errorf("the sort died: %v", cmd.ProcessState)
		} else if said := fmt.Sprint(cmd.Stderr); said != "" || s.Exited() && s.ExitStatus() != 0 {
			t.Errorf("%v: %s", cmd.ProcessState, said)
		}

		wantFile(t, in, text)
		if got, err := os.ReadFile(out); err == nil && bytes.Equal(got, sorted) {
			complete++
		} else {
			wantFile(t, out, old)
		}
		named += wantNoneBut(t, dir, sorted)
		if left, _ := os.ReadDir(temp); len(left) > 0 {
			t.Errorf("it left %v", left)
		}
		if t.Failed() {
			t.Fatalf("kill %d: -seed %d", n, faults.Seed())
		}
		filetest.Must(t, os.RemoveAll(out))
		faults.Show("kills", n+1, faults.Kills())
	}
	var where []string
	for i, n := range kills {
		where = append(where, fmt.Sprintf("%d %s", n, phases[i]))
	}
	t.Logf("%d kills: %s; %d outputs complete, %d of them with a second name left, %.1f s", faults.Kills(), strings.Join(where, ", "), complete+named, named, time.Since(start).Seconds())
}

// wantNoneBut checks that a directory has the output at most, or the complete output
// under the name that it has for the instant before it replaces an old file. It
// removes that, and returns how many there are.
func wantNoneBut(t *testing.T, dir string, sorted []byte) (named int) {
	t.Helper()
	files := freehold.Must(os.ReadDir(dir))
	for _, f := range files {
		if f.Name() != "out" {
			wantFile(t, filepath.Join(dir, f.Name()), sorted)
			filetest.Must(t, os.Remove(filepath.Join(dir, f.Name())))
			named++
		}
	}
	return named
}

// A sort whose reader has seen enough ends as GNU sort does: by SIGPIPE, silently.
func TestSortIntoAPipeThatIsClosed(t *testing.T) {
	text, sorted := linesFor(faults.Random(0), 2_000_000)
	temp := t.TempDir()
	in := filepath.Join(t.TempDir(), "in")
	filetest.Must(t, os.WriteFile(in, text, 0o600))
	for _, size := range []string{"256K", "1G"} {
		cmd := sortProcess(t, "-S", size, "-T", temp, in)
		out := freehold.Must(cmd.StdoutPipe())
		filetest.Must(t, cmd.Start())
		first := make([]byte, 100)
		if _, err := out.Read(first); err != nil || !bytes.Equal(first, sorted[:100]) {
			t.Errorf("it begins with %q, %v", first, err)
		}
		filetest.Must(t, out.Close())
		_ = cmd.Wait()
		if s := cmd.ProcessState.Sys().(syscall.WaitStatus); s.Signal() != syscall.SIGPIPE || fmt.Sprint(cmd.Stderr) != "" {
			t.Errorf("-S %s: %v, %s", size, cmd.ProcessState, cmd.Stderr)
		}
		if left, _ := os.ReadDir(temp); len(left) > 0 {
			t.Errorf("it left %v", left)
		}
	}
}

// Where its parent ignores SIGPIPE, and so the sort does, that is an error.
func TestSortWithoutSIGPIPE(t *testing.T) {
	in := filepath.Join(t.TempDir(), "in")
	text, _ := linesFor(faults.Random(0), 1_000_000)
	filetest.Must(t, os.WriteFile(in, text, 0o600))
	cmd := sortProcess(t, in)
	sh := exec.CommandContext(t.Context(), "sh", append([]string{"-c", `trap '' PIPE; "$@"; exit $?`, "sh"}, cmd.Args...)...)
	sh.Env, sh.Stderr = cmd.Env, cmd.Stderr
	out := freehold.Must(sh.StdoutPipe())
	filetest.Must(t, errors.Join(sh.Start(), out.Close()))
	_ = sh.Wait()
	if code, said := sh.ProcessState.ExitCode(), fmt.Sprint(cmd.Stderr); code != cli.Misused || said != "freehold: write /dev/stdout: broken pipe\n" {
		t.Errorf("exit code %d, %s", code, said)
	}
}

// A sort that was started with SIGINT ignored goes on after one.
func TestSortWithoutSIGINT(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	filetest.Must(t, syscall.Mkfifo(pipe, 0o600))
	cmd := sortProcess(t, pipe)
	sh := exec.CommandContext(t.Context(), "sh", append([]string{"-c", `trap '' INT; exec "$@"`, "sh"}, cmd.Args...)...)
	sh.Env, sh.Stderr, sh.Stdout = cmd.Env, cmd.Stderr, &bytes.Buffer{}
	filetest.Must(t, sh.Start())
	w := freehold.Must(os.OpenFile(pipe, os.O_WRONLY, 0)) // once the sort reads
	status := freehold.Must(os.ReadFile(fmt.Sprintf("/proc/%d/status", sh.Process.Pid)))
	ignored := ""
	if at := bytes.Index(status, []byte("SigIgn:")); at >= 0 {
		fmt.Sscan(string(status[at+len("SigIgn:"):]), &ignored)
	}
	if !strings.HasSuffix(ignored, "2") { // SIGINT's bit; it ignores none of its neighbours
		t.Errorf("it ignores the signals %s, want SIGINT", ignored)
	}
	filetest.Must(t, sh.Process.Signal(syscall.SIGINT))
	freehold.Must(w.WriteString("b\n"))
	filetest.Must(t, w.Close())
	if err := sh.Wait(); err != nil || fmt.Sprint(sh.Stdout) != "b\n" {
		t.Errorf("%v, %q, %s", err, sh.Stdout, cmd.Stderr)
	}
}

// Other commands whose output is all that they do fail without one.
func TestCommandsWithoutOutput(t *testing.T) {
	for args, want := range map[string]int{"man": cli.Failed, "completion bash": cli.Failed, "stats --help": cli.Failed, "version": cli.OK} {
		cmd := faults.Self(t, strings.Fields(args)...)
		sh := exec.CommandContext(t.Context(), "sh", append([]string{"-c", `exec "$@" >&-`, "sh"}, cmd.Args...)...)
		sh.Env = cmd.Env
		_ = sh.Run()
		if code := sh.ProcessState.ExitCode(); code != want {
			t.Errorf("%s: exit code %d, want %d", args, code, want)
		}
	}
}

// -o names a pipe: it is written, not replaced. It is an error if the pipe has no reader
// any more.
func TestSortToANamedPipe(t *testing.T) {
	text, sorted := linesFor(faults.Random(0), 1_000_000)
	dir := t.TempDir()
	in, pipe := filepath.Join(dir, "in"), filepath.Join(dir, "pipe")
	filetest.Must(t, os.WriteFile(in, text, 0o600))
	filetest.Must(t, syscall.Mkfifo(pipe, 0o600))
	for _, all := range []bool{true, false} {
		cmd := sortProcess(t, "-S", "256K", "-T", dir, "-o", pipe, in)
		filetest.Must(t, cmd.Start())
		r := freehold.Must(os.Open(pipe))
		got := make([]byte, 100)
		if all {
			got = freehold.Must(io.ReadAll(r))
		} else {
			freehold.Must(r.Read(got))
		}
		r.Close()
		_ = cmd.Wait()
		code, said := cmd.ProcessState.ExitCode(), fmt.Sprint(cmd.Stderr)
		if all {
			faults.Same(t, "what the pipe gave", got, sorted)
		}
		if all && (code != 0 || said != "") || !all && (code != cli.Misused || said != "freehold: write "+pipe+": broken pipe\n") {
			t.Errorf("all of it %t: exit code %d, %q", all, code, said)
		}
		if info, err := os.Stat(pipe); err != nil || info.Mode().Type() != fs.ModeNamedPipe {
			t.Errorf("the pipe is %v, %v", info, err)
		}
	}
}

// -o names a descriptor: its file is written, as by GNU sort. The file may be an input, of a
// merge too.
func TestSortToADescriptor(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct{ script, want string }{
		{`"$@" -o /dev/stdout in | cat`, "a\nb\nc\n"},
		{`"$@" -o /dev/stdout in >out && cat out`, "a\nb\nc\n"},
		{`"$@" -o /dev/fd/3 in 3>out && cat out`, "a\nb\nc\n"},
		{`exec 3<>out; rm out; "$@" -o /dev/fd/3 in && cat <&3`, "a\nb\nc\n"},
		{`exec 3<>out; rm out; cat in >&3; "$@" -u -o /dev/fd/3 /dev/fd/3 in && cat /dev/fd/3`, "a\nb\nc\n"},
		{`exec 3<>out; rm out; seq -w 0 2 199998 >&3; seq -w 1 2 199999 | "$@" -m -S 256K -o /dev/fd/3 /dev/fd/3 - && seq -w 0 199999 | cmp - /dev/fd/3`, ""},
		{`ln -s /dev/stdout link; "$@" -o link in | cat; test -L link`, "a\nb\nc\n"},
	} {
		filetest.Must(t, os.WriteFile(filepath.Join(dir, "in"), []byte("c\na\nb\n"), 0o600))
		cmd := sortProcess(t)
		sh := exec.CommandContext(t.Context(), "sh", append([]string{"-c", tt.script, "sh"}, cmd.Args...)...)
		sh.Dir, sh.Env, sh.Stderr = dir, cmd.Env, cmd.Stderr
		if got, err := sh.Output(); err != nil || string(got) != tt.want {
			t.Errorf("%s: %v, %q, want %q; %s", tt.script, err, got, tt.want, cmd.Stderr)
		}
		if left := freehold.Must(filepath.Glob(filepath.Join(dir, "*deleted*"))); len(left) > 0 {
			t.Errorf("%s: left %v", tt.script, left)
		}
	}
}

// Files that the process may not open at a time are merged in passes.
func TestMergeOfMoreFilesThanMayBeOpen(t *testing.T) {
	dir := t.TempDir()
	args := []string{"-c", `ulimit -n 64 && exec "$@"`, "sh"}
	cmd := sortProcess(t, "-m", "-T", dir)
	args = append(args, cmd.Args...)
	var want []string
	for i := range 300 {
		name := filepath.Join(dir, fmt.Sprint(i))
		lines := []string{fmt.Sprintf("%04d\n", i*7%300), fmt.Sprintf("%04d\n", 300+i)}
		want = append(want, lines...)
		filetest.Must(t, os.WriteFile(name, []byte(strings.Join(lines, "")), 0o600))
		args = append(args, name)
	}
	slices.Sort(want)
	sh := exec.CommandContext(t.Context(), "sh", args...)
	sh.Env, sh.Stderr = cmd.Env, cmd.Stderr
	got, err := sh.Output()
	if err != nil {
		t.Errorf("%v, %s", err, cmd.Stderr)
	}
	faults.Same(t, "the output", got, []byte(strings.Join(want, "")))
}

// The status equals GNU sort's if output cannot be written, if there is none, and if there is
// no input. No file is lost then. A /dev/null opened for both reading and
// writing cannot be told from a closed stream.
func TestSortWithoutStreams(t *testing.T) {
	dir := t.TempDir()
	in := filepath.Join(dir, "in")
	filetest.Must(t, os.WriteFile(in, []byte("b\na\n"), 0o600))
	link := func(stream string) string { // two links, of which one is relative
		first, second := filepath.Join(dir, stream), filepath.Join(dir, "to-"+stream)
		filetest.Must(t, os.Symlink("/dev/"+stream, first), os.Symlink(stream, second))
		return second
	}
	for _, tt := range []struct {
		how, args string
		want      int
	}{
		{">&-", in, cli.Misused},
		{">&-", "--help", cli.Misused},
		{">&-", "-m " + in, cli.Misused},
		{">&-", os.DevNull, cli.OK},
		{">&-", "-o " + in + " " + in, cli.OK},
		{">&-", "-o /dev/stdout " + in, cli.Misused},
		{"<&-", "", cli.Misused},
		{"<&-", "-m", cli.Misused},
		{"<&-", "-c", cli.Misused},
		{"<&-", "-C", cli.Misused},
		{"<&-", "-o " + in, cli.Misused},
		{"<&-", "-m -o " + in, cli.Misused},
		{"<&-", "-o " + in + " " + in + " -", cli.Misused},
		{"<&-", "-o " + in + " /dev/stdin", cli.Misused},
		{"<&-", "-o " + in + " /dev/fd/0", cli.Misused},
		{"<&-", "-o " + in + " " + link("stdin"), cli.Misused},
		{">&-", "-o " + link("stdout") + " " + in, cli.Misused},
		{"<&-", "-o " + in + " " + in, cli.OK},
		{"<>/dev/null", "-o " + in, cli.Misused},
		{"</dev/null", "-o " + in, cli.OK},
		{"</dev/null", "-c", cli.OK},
		{">/dev/null", in, cli.OK},
		{">/dev/full", in, cli.Misused},
		{">/dev/full", "--help", cli.Misused},
		{"2>/dev/full", in, cli.OK},
		{"2>/dev/full", "-c " + in + " -r", cli.OK},
		{"2>/dev/full", "-c " + in, cli.Misused},
		{"2>/dev/full", "--nothing", cli.Misused},
	} {
		filetest.Must(t, os.WriteFile(in, []byte("b\na\n"), 0o600))
		cmd := sortProcess(t, strings.Fields(tt.args)...)
		sh := exec.CommandContext(t.Context(), "sh", append([]string{"-c", `exec "$@" ` + tt.how, "sh"}, cmd.Args...)...)
		sh.Env, sh.Stderr = cmd.Env, cmd.Stderr
		_ = sh.Run()
		if code := sh.ProcessState.ExitCode(); code != tt.want || tt.how[0] != '2' && (fmt.Sprint(cmd.Stderr) == "") != (code == cli.OK) {
			t.Errorf("sort %s %s: exit code %d, want %d, %s", tt.args, tt.how, code, tt.want, cmd.Stderr)
		}
		if tt.want != cli.OK {
			wantFile(t, in, []byte("b\na\n"))
		}
	}
}
