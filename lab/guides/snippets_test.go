package guides

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// imports are the imports of all snippets.
const imports = `package p
import (
	"bytes"; "context"; "crypto/rand"; "database/sql"; "encoding/json"; "errors"; "fmt"; "io"; "iter"; "log"; "log/slog"; "net/http"; "os"; "slices"; "time"
	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/arena"
	"github.com/freehold-go/freehold/budget"
	"github.com/freehold-go/freehold/buffer"
	"github.com/freehold-go/freehold/cache"
	"github.com/freehold-go/freehold/extsort"
	"github.com/freehold-go/freehold/hashmap"
	"github.com/freehold-go/freehold/pool"
	"github.com/freehold-go/freehold/profile"
	"github.com/freehold-go/freehold/secret"
	"github.com/freehold-go/freehold/track/web"
	_ "github.com/freehold-go/freehold/budget/auto"
)
`

// given are variables that snippets use and do not declare.
const given = `
type (
	Entry struct{ n int }
	User  struct{ Name string }
)
var (
	buf, key, value, line, message []byte
	heap     *freehold.Heap
	b        *budget.Budget
	pages    interface{ Evict(bytes int) }
	m        *hashmap.Map[int, int]
	k, v, id int
	db       interface{ User(ctx context.Context, id int) (User, error) }
	evict    func() bool
	err      error
	ctx      context.Context
	reader   io.Reader
	records  iter.Seq[[]byte]
	from, to int
	field    func(line []byte) []byte
	less     func(a, b []byte) bool
	sign     func(key, message []byte) error
)
`

// exports returns an importer of the packages that the snippets import.
func exports(t *testing.T, fset *token.FileSet) types.Importer {
	t.Helper()
	file, err := parser.ParseFile(fset, "", imports, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}"}
	for _, spec := range file.Imports {
		args = append(args, strings.Trim(spec.Path.Value, `"`))
	}
	out, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	exported := map[string]string{}
	for l := range strings.Lines(string(out)) {
		path, export, _ := strings.Cut(strings.TrimSpace(l), " ")
		exported[path] = export
	}
	return importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		if exported[path] == "" {
			return nil, fmt.Errorf("no page imports %s: add it to imports", path)
		}
		return os.Open(exported[path])
	})
}

var fence = regexp.MustCompile("(?s)(-->\n)?```go\n(.*?)```")

// The program on the first screen of the README runs as it is there.
func TestProgramOfReadme(t *testing.T) {
	file := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(file, []byte(fence.FindStringSubmatch(read(t, "../../README.md"))[2]), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "go", "run", file).CombinedOutput()
	if want := "signed in, true\n1000000\n"; string(out) != want || err != nil {
		t.Errorf("%q, %v, want %q", out, err, want)
	}
}

// Each Go snippet on a page compiles; it may leave names unused. A snippet is a file or the body of
// a function. Whole programs and those with marks are skipped, since other tests run them.
func TestSnippetsCompile(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Skip("the pages are not here", err)
	}
	fset := token.NewFileSet()
	config := types.Config{Importer: exports(t, fset), Error: func(err error) {
		if !strings.Contains(err.Error(), " and not used") {
			t.Error(err)
		}
	}}
	n := 0
	for _, path := range append(pages, "../../README.md") {
		page := read(t, path)
		for _, at := range fence.FindAllStringSubmatchIndex(page, -1) {
			if at[2] >= 0 || strings.HasPrefix(page[at[4]:], "package main") {
				continue
			}
			n++
			code := strings.ReplaceAll(page[at[4]:at[5]], "…", "")
			where := fmt.Sprintf("\n//line %s:%d\n", path, strings.Count(page[:at[4]], "\n")+1)
			parse := func(code string) (*ast.File, error) {
				return parser.ParseFile(fset, "", imports+where+code+given, 0)
			}
			file, err := parse(code)
			if err != nil {
				file, err = parse("func _() {" + where + code + "}\n")
			}
			if err != nil {
				t.Error(err)
				continue
			}
			config.Check("p", fset, []*ast.File{file}, nil)
		}
	}
	if n < 10 {
		t.Errorf("%d snippets", n)
	}
}
