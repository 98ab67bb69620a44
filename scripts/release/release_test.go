package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestDatedChangelog(t *testing.T) {
	day := time.Date(2026, 12, 24, 0, 0, 0, 0, time.UTC)
	tests := []struct{ name, text, want string }{
		{"gets the day", "## [0.2.0]\n- a\n## [0.1.0] - 2026-01-31\n- b", "## [0.2.0] - 2026-12-24\n- a\n## [0.1.0] - 2026-01-31\n- b"},
		{"keeps its day", "## [Unreleased]\n\n## [0.2.0] - 2026-12-01\n### Added\n- a", "## [Unreleased]\n\n## [0.2.0] - 2026-12-01\n### Added\n- a"},
		{"without a section", "# Changelog\n## [Unreleased]\n- a", "no section"},
		{"with entries above", "## [Unreleased]\n- b\n\n## [0.2.0]\n- a", "move it there"},
		{"of another version", "## [0.3.0]\n- a", "first section is that of v0.3.0"},
		{"without an entry", "## [0.2.0]\n\n## [0.1.0] - 2026-01-31\n- b", "no entry"},
		{"the oldest first", "## [0.2.0]\n- a\n## [0.10.0] - 2026-01-31\n- b", "no newer"},
		{"twice", "## [0.2.0]\n- a\n## [0.2.0]\n- b", "no newer"},
		{"an old one without a date", "## [0.2.0]\n- a\n## [0.1.0]\n- b", "no date"},
		{"a day that is none", "## [0.2.0] - 2026-02-30\n- a", "out of range"},
		{"unreleased below", "## [0.2.0]\n- a\n## [Unreleased]\n- b", "no heading"},
		{"another heading", "## v0.2.0\n- a", "no heading"},
	}
	for _, tt := range tests {
		got, err := datedChangelog(tt.text, "v0.2.0", day)
		if err != nil {
			got = err.Error()
		}
		if got != tt.want && (err == nil || !strings.Contains(got, tt.want)) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// A release of a branch that has moved on since changes nothing.
func TestReleaseOfAnOldHead(t *testing.T) {
	for _, name := range []string{"AUTHOR", "COMMITTER"} {
		t.Setenv("GIT_"+name+"_NAME", "a")
		t.Setenv("GIT_"+name+"_EMAIL", "a@example.com")
	}
	repo, clone := t.TempDir(), filepath.Join(t.TempDir(), "clone")
	do := func(dir string, args ...string) string {
		t.Helper()
		said, err := git(dir, args...)
		if err != nil {
			t.Fatal(err)
		}
		return said
	}
	do(repo, "init", "--quiet")
	do(repo, "commit", "--quiet", "--allow-empty", "--message", "one")
	do(repo, "clone", "--quiet", ".", clone)
	do(clone, "commit", "--quiet", "--allow-empty", "--message", "all: v0.1.0")
	do(clone, "tag", "v0.1.0")
	do(repo, "commit", "--quiet", "--allow-empty", "--message", "two")
	head := do(repo, "rev-parse", "HEAD")
	r := &release{version: "v0.1.0", dir: clone, modules: []member{{"example.com/m", "."}}}
	if err := r.bring(repo); err == nil || !strings.Contains(err.Error(), "merge") {
		t.Errorf("error %v", err)
	}
	if now := do(repo, "rev-parse", "HEAD"); now != head || do(repo, "tag") != "" {
		t.Errorf("HEAD %s, was %s; tags %q", now, head, do(repo, "tag"))
	}
	// Nor does one of whose tags another is there: all come or none.
	do(repo, "reset", "--quiet", "--hard", "HEAD^")
	do(repo, "tag", "v0.1.0")
	do(clone, "tag", "sub/v0.1.0")
	r.modules = append(r.modules, member{"example.com/m/sub", "sub"})
	if err := r.bring(repo); err == nil || do(repo, "tag") != "v0.1.0" {
		t.Errorf("error %v; tags %q", err, do(repo, "tag"))
	}
}

// A repository of three modules, each of which requires the one before, is released twice:
// what is tagged is what was tried.
func TestRelease(t *testing.T) {
	repo, temp := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", temp)
	write := func(name, text string) {
		t.Helper()
		name = filepath.Join(repo, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	do := func(args ...string) string {
		t.Helper()
		said, err := git(repo, args...)
		if err != nil {
			t.Fatal(err)
		}
		return said
	}
	commit := func() {
		t.Helper()
		do("add", "--all")
		do("commit", "--quiet", "--message", "all: something")
	}
	refused := func(version, want string) {
		t.Helper()
		head := do("rev-parse", "HEAD")
		if err := run(version, true); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", version, err, want)
		}
		if do("rev-parse", "HEAD") != head || do("tag", "--list", "*"+version) != "" {
			t.Errorf("%s was refused, and changed the repository", version)
		}
	}
	config := filepath.Join(t.TempDir(), "config")
	t.Setenv("GIT_CONFIG_GLOBAL", config)
	identity := func(user string) {
		t.Helper()
		if err := os.WriteFile(config, []byte("[user]\n"+user), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	identity("name = a\nemail = a@example.com\n")
	t.Chdir(repo)
	do("init", "--quiet")
	write("LICENSE", "free")
	write("CHANGELOG.md", "## [0.1.0]\n- all\n")
	write("go.work", "go 1.26.0\n\nuse (\n\t.\n\t./cmd/hello\n\t./sub\n\t./tool\n)\n\nreplace example.com/m v0.0.1 => .\n\nreplace example.com/m/sub v0.0.1 => ./sub\n")
	write("go.mod", "module example.com/m\n\ngo 1.26.0\n")
	write("m.go", "package m\n\nfunc F() {}\n")
	write("cmd/hello/go.mod", "module example.com/m/cmd/hello\n\ngo 1.26.0\n\nrequire (\n\texample.com/m v0.0.1 // indirect\n\texample.com/m/sub v0.0.1\n)\n")
	good := map[string]string{
		"sub/go.mod":  "module example.com/m/sub\n\ngo 1.26.0\n\nrequire example.com/m v0.0.1\n",
		"sub/sub.go":  "package sub\n\nimport \"example.com/m\"\n\nfunc G() { m.F() }\n",
		"unused/u.go": "package unused\n\nvar U = 1\n", // by the command
		"cmd/hello/main.go": `package main

import (
	"fmt"
	"runtime/debug"

	"example.com/m/sub"
)

func main() {
	sub.G()
	info, _ := debug.ReadBuildInfo()
	fmt.Println("hello", info.Main.Version, "and so on")
}
`,
	}
	for name, text := range good {
		write(name, text)
	}
	write("tool/go.mod", "module tool\n\ngo 1.26.0\n") // not at its path: no module to release
	commit()
	refused("v0.2.0", "first section is that of v0.1.0")
	refused("0.1.0", "is no version")
	refused("v0.1", "is no version")
	refused("", "is no version")
	for _, tt := range []struct{ file, old, new, want string }{
		{"sub/go.mod", "example.com/m v", "example.com/m/cmd/hello v", "require each other"},
		{"sub/go.mod", "require", "replace example.com/m => ..\n\nrequire", "has a replace directive"},
		{"sub/sub.go", "m.F", "m.None", "undefined: m.None"},
		{"unused/u.go", "1", "none", "undefined: none"},
		{"cmd/hello/main.go", "Version", "Version[1:]", "version says"},
	} {
		write(tt.file, strings.Replace(good[tt.file], tt.old, tt.new, 1))
		commit()
		refused("v0.1.0", tt.want)
		write(tt.file, good[tt.file])
	}
	commit()
	do("tag", "v1")                    // no version
	identity("useConfigOnly = true\n") // which a rehearsal needs none of
	if err := run("v0.1.0", false); err != nil {
		t.Fatal(err)
	}
	identity("name = a\nemail = a@example.com\n")
	if tags := do("tag"); tags != "v1" {
		t.Errorf("a rehearsal tagged %s", tags)
	}
	write("sub/more.txt", "more")
	refused("v0.1.0", "not committed")
	commit()
	before := do("rev-parse", "HEAD")
	if err := run("v0.1.0", true); err != nil {
		t.Fatal(err)
	}
	if parent := do("rev-parse", "HEAD^"); parent != before {
		t.Errorf("the release is %s after %s, not one commit", parent, before)
	}
	if got, want := do("tag", "--points-at", "HEAD"), "cmd/hello/v0.1.0\nsub/v0.1.0\nv0.1.0"; got != want {
		t.Errorf("tags %s, want %s", got, want)
	}
	if sum := do("show", "HEAD:cmd/hello/go.sum"); strings.Count(sum, "example.com/m/sub v0.1.0") != 2 {
		t.Errorf("go.sum of the command lacks the hashes of what it requires:\n%s", sum)
	}
	if work := do("show", "HEAD:go.work"); strings.Contains(work, "v0.0.1") || strings.Count(work, "v0.1.0 =>") != 2 {
		t.Errorf("go.work replaces another version:\n%s", work)
	}
	refused("v0.0.9", "is older than v0.1.0")

	write("m.go", "package m\n\nfunc F() {}\n\nfunc H(int) {}\n")
	write("sub/sub.go", "package sub\n\nimport \"example.com/m\"\n\nfunc G() { m.F(); m.H(1) }\n")
	write("CHANGELOG.md", "## [0.1.1]\n- H\n\n## [0.1.0] - 2026-01-31\n- all\n")
	write("tool/go.mod", "module example.com/m/tool\n\ngo 1.26.0\n") // one more
	commit()
	if err := run("v0.1.0", false); err != nil { // as it is tagged
		t.Error(err)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("temporary files are left: %v, %v", left, err)
	}
	if testing.Short() {
		return // gorelease is built anew
	}
	refused("v0.1.1", "a patch version must not change the interface")
	write("CHANGELOG.md", "## [0.2.0]\n- H\n\n## [0.1.0] - 2026-01-31\n- all\n")
	commit()
	if err := run("v0.2.0", true); err != nil {
		t.Fatal(err)
	}
}
