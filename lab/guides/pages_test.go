package guides

import (
	"flag"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the programs into docs/guides")

// files have the programs: the bodies of Examples, and malloc.go as a whole, since a test cannot
// have C.
var files = []string{"*_test.go", "malloc.go", "../../adapters/arrow/guide_test.go"}

// A program is the code that a page shows, and its output.
type program struct{ text, output string }

// programs returns all programs by name, such as bigcacheBefore.
func programs(t *testing.T) map[string]program {
	t.Helper()
	all := map[string]program{}
	for _, pattern := range files {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			t.Fatal(pattern, err)
		}
		for _, path := range paths {
			source := read(t, path)
			fset := token.NewFileSet()
			file, err := parser.ParseFile(fset, path, source, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			offset := func(p token.Pos) int { return fset.Position(p).Offset }
			if !strings.HasSuffix(path, "_test.go") {
				name := file.Decls[len(file.Decls)-1].(*ast.FuncDecl).Name.Name
				all[name] = program{strings.TrimLeft(source[offset(file.Name.End()):], "\n"), all[name].output}
				continue
			}
			for _, e := range doc.Examples(file) {
				name := strings.TrimPrefix(e.Name, "_")
				text := source[offset(e.Code.Pos())+1 : offset(e.Code.End())-1]
				text, _, _ = strings.Cut(text, "\t// Output:")
				all[name] = program{strings.TrimSpace(strings.ReplaceAll(text, "\n\t", "\n")) + "\n", e.Output}
			}
		}
	}
	return all
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(text), "\r\n", "\n")
}

// The programs before and after have the same output.
func TestProgramsPrintTheSame(t *testing.T) {
	all := programs(t)
	for name := range all {
		library := strings.TrimSuffix(strings.TrimSuffix(name, "Before"), "After")
		before, after := all[library+"Before"], all[library+"After"]
		if before.output != after.output || before.output == "" || before.text == after.text {
			t.Errorf("%s:\n%sprints %q, and the program after\n%sprints %q", library, before.text, before.output, after.text, after.output)
		}
	}
	if len(all) < 20 {
		t.Errorf("%d programs", len(all))
	}
}

// The program with an experiment's package needs a standard library of its own, which takes half a
// minute to build.
func TestArenasExperiment(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the standard library")
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "arenas_experiment_test.go")
	cmd.Env = append(os.Environ(), "GOEXPERIMENT=arenas")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "ok") {
		t.Errorf("%v: %s", err, out)
	}
}

// Each program is on a page, as it is here.
func TestPagesAreUpToDate(t *testing.T) {
	all := programs(t)
	pages, err := filepath.Glob("../../docs/guides/*.md")
	if err != nil || len(pages) == 0 {
		t.Skip("the pages are not here", err)
	}
	pages = append(pages, "../../docs/records.md")
	mark := regexp.MustCompile(`(?s)<!-- (\w+(?:Before|After)) -->\n.*?<!-- end of \w+ -->\n`)
	shown := map[string]bool{}
	for _, path := range pages {
		page := read(t, path)
		want := mark.ReplaceAllStringFunc(page, func(part string) string {
			name := mark.FindStringSubmatch(part)[1]
			p, known := all[name]
			if !known {
				t.Errorf("%s shows %s, which is no program", path, name)
			}
			shown[name] = true
			return "<!-- " + name + " -->\n```go\n" + p.text + "```\n<!-- end of " + name + " -->\n"
		})
		switch {
		case page == want:
		case !*update:
			t.Errorf("%s is not up to date: go test ./guides -update, in lab", path)
		default:
			if err := os.WriteFile(path, []byte(want), 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !shown[name] {
			t.Errorf("no page shows %s", name)
		}
	}
}
