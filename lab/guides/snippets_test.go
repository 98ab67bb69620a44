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
	"bytes"; "context"; "errors"; "fmt"; "io"; "iter"; "log"; "log/slog"; "net/http"; "slices"; "time"
	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/arena"
	"github.com/freehold-go/freehold/budget"
	"github.com/freehold-go/freehold/buffer"
	"github.com/freehold-go/freehold/cache"
	"github.com/freehold-go/freehold/extsort"
	"github.com/freehold-go/freehold/hashmap"
	"github.com/freehold-go/freehold/pool"
	"github.com/freehold-go/freehold/profile"
	"github.com/freehold-go/freehold/track/web"
	_ "github.com/freehold-go/freehold/budget/auto"
)
`

// given are variables that snippets use and do not declare.
const given = `
type Entry struct{ n int }
var (
	buf, key, value, line []byte
	heap     *freehold.Heap
	b        *budget.Budget
	pages    interface{ Evict(bytes int) }
	m        *hashmap.Map[int, int]
	k, v     int
	evict    func() bool
	err      error
	ctx      context.Context
	reader   io.Reader
	records  iter.Seq[[]byte]
	from, to int
	field    func(line []byte) []byte
	less     func(a, b []byte) bool
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

// Each Go snippet on a page compiles; it may leave names unused. A snippet is a file or the body of
// a function. Programs with marks are skipped, since other tests run them.
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
	fence := regexp.MustCompile("(?s)(-->\n)?```go\n(.*?)```")
	n := 0
	for _, path := range append(pages, "../../README.md") {
		page := read(t, path)
		for _, at := range fence.FindAllStringSubmatchIndex(page, -1) {
			if at[2] >= 0 {
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
