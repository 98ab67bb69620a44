package analysis_test

import (
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"

	"github.com/freehold-go/freehold/analysis"
)

const page = "../docs/vet.md"

var update = flag.Bool("update", false, "write docs/vet.md")

// A report is what an analyzer says, and where.
type report struct {
	token.Position
	analyzer, message string
}

// vet runs all analyzers over a package and its tests.
func vet(t *testing.T, dir, pattern string, env ...string) (*packages.Package, []report) {
	t.Helper()
	pkgs, err := packages.Load(&packages.Config{
		Mode: packages.LoadAllSyntax, Dir: dir, Tests: true, Env: append(os.Environ(), env...),
	}, pattern)
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(pkgs, func(a, b *packages.Package) int { return cmp.Compare(len(b.Syntax), len(a.Syntax)) })
	pkg := pkgs[0] // with its tests
	if len(pkg.Errors) > 0 {
		t.Fatal(pkg.Errors)
	}
	graph, err := checker.Analyze(analysis.Analyzers(), []*packages.Package{pkg}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var all []report
	for _, act := range graph.Roots {
		if act.Err != nil {
			t.Fatal(act.Err)
		}
		for _, d := range act.Diagnostics {
			all = append(all, report{pkg.Fset.Position(d.Pos), act.Analyzer.Name, d.Message})
		}
	}
	slices.SortFunc(all, func(a, b report) int {
		return cmp.Or(cmp.Compare(a.Filename, b.Filename), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return pkg, all
}

// part replaces the text between the marks of a name in the page, or compares it.
func part(t *testing.T, name, want string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Skip(err) // the sources are not here
	}
	begin, end := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->\n"
	head, rest, ok := strings.Cut(strings.ReplaceAll(string(text), "\r\n", "\n"), begin)
	got, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no %s", page, name)
	}
	if got == want {
		return
	}
	if !*update {
		t.Errorf("%s is not up to date: go test -update", page)
		return
	}
	if err := os.WriteFile(page, []byte(head+begin+want+end+tail), 0o666); err != nil {
		t.Fatal(err)
	}
}

// The page has what freeholdvet says of a program.
func TestPageIsUpToDate(t *testing.T) {
	source, err := os.ReadFile("testdata/page/rows.go")
	if err != nil {
		t.Fatal(err)
	}
	part(t, "program", "```go\n"+string(source)+"```\n")
	_, reports := vet(t, "testdata", "./page", "GOWORK=off")
	var out strings.Builder
	seen := map[string]bool{}
	for _, r := range reports {
		fmt.Fprintf(&out, "%s:%d:%d: %s\n", filepath.Base(r.Filename), r.Line, r.Column, r.message)
		seen[r.analyzer] = true
	}
	for _, a := range analysis.Analyzers() {
		if !seen[a.Name] {
			t.Errorf("%s has nothing on the page", a.Name)
		}
	}
	part(t, "output", "```\n$ go vet -vettool=$(which freeholdvet) .\n"+out.String()+"```\n")
}

// A half of a program of internal/test/misuse, with its mistake or without it.
type half struct {
	mistake    string
	isTwin     bool
	begin, end token.Position
}

func (h half) has(p token.Position) bool {
	return h.begin.Filename == p.Filename && h.begin.Offset <= p.Offset && p.Offset < h.end.Offset
}

// halves returns the programs: {"mistake", caught, bug, twin}.
func halves(pkg *packages.Package) []half {
	var all []half
	for _, f := range pkg.Syntax {
		ast.Inspect(f, func(n ast.Node) bool {
			lit, ok := n.(*ast.CompositeLit)
			if !ok || types.TypeString(pkg.TypesInfo.TypeOf(lit), types.RelativeTo(pkg.Types)) != "program" || len(lit.Elts) != 4 {
				return true
			}
			name, ok := lit.Elts[0].(*ast.BasicLit)
			if !ok {
				return true
			}
			mistake, _ := strconv.Unquote(name.Value)
			for i, elt := range lit.Elts[2:] {
				all = append(all, half{mistake, i == 1, pkg.Fset.Position(elt.Pos()), pkg.Fset.Position(elt.End())})
			}
			return true
		})
	}
	return all
}

// Of the programs with mistakes many are reported, and they are on the page; of
// their correct twins none is.
func TestMisuse(t *testing.T) {
	pkg, reports := vet(t, "..", "./internal/test/misuse")
	programs := halves(pkg)
	if len(programs) < 200 {
		t.Fatalf("%d halves of programs", len(programs))
	}
	finders := map[string][]string{} // by mistake
	for _, r := range reports {
		i := slices.IndexFunc(programs, func(h half) bool { return h.has(r.Position) })
		switch {
		case i < 0:
			t.Errorf("outside of the programs: %s: %s: %s", r.Position, r.analyzer, r.message)
		case programs[i].isTwin:
			t.Errorf("a correct program: %s: %s: %s", r.Position, r.analyzer, r.message)
		case r.analyzer == "unclosed" && !strings.Contains(programs[i].mistake, "never closed") && !strings.Contains(programs[i].mistake, "guard is held"):
			// after a mistake that panics, the rest is not closed
		case !slices.Contains(finders[programs[i].mistake], r.analyzer):
			finders[programs[i].mistake] = append(finders[programs[i].mistake], r.analyzer)
		}
	}
	var out strings.Builder
	out.WriteString("| mistake | reported by |\n|---|---|\n")
	for _, p := range programs {
		if by := finders[p.mistake]; len(by) > 0 && !p.isTwin {
			fmt.Fprintf(&out, "| %s | %s |\n", p.mistake, strings.Join(by, ", "))
		}
	}
	fmt.Fprintf(&out, "\n%d of %d mistakes.\n", len(finders), len(programs)/2)
	part(t, "misuse", out.String())
}
