//go:build ignore

// Packages writes a page in Markdown for each public package of the core and of the other modules
// into a folder, from the packages' own documentation: see scripts/site.py.
package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/doc"
	"go/doc/comment"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"log"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

func main() {
	err := filepath.WalkDir(".", func(dir string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if notPublic.MatchString(d.Name()) {
			return fs.SkipDir
		}
		pkg, err := build.ImportDir(dir, 0)
		if none := new(build.NoGoError); errors.As(err, &none) || err == nil && pkg.Name == "main" {
			return nil
		}
		if err != nil {
			return err
		}
		path := importPath(dir)
		page, err := pageOf(path, dir, pkg.GoFiles)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(os.Args[1], pageName(path)), page, 0o644)
	})
	if err != nil {
		log.Fatal(err)
	}
}

const root = "github.com/freehold-go/freehold"

// notPublic matches the names of folders without public packages.
var notPublic = regexp.MustCompile(`^(\..+|_.*|testdata|internal|examples?|cmd|lab|scripts)$`)

func importPath(dir string) string { return path.Join(root, filepath.ToSlash(dir)) }

// pageName returns the name of a package's page. A path may have hyphens, but no other dots.
func pageName(path string) string {
	return "freehold" + strings.ReplaceAll(strings.TrimPrefix(path, root), "/", ".") + ".md"
}

// A page is the Markdown of a package.
type page struct {
	bytes.Buffer
	pkg  *doc.Package
	fset *token.FileSet
}

func pageOf(path, dir string, names []string) ([]byte, error) {
	fset := token.NewFileSet()
	tests, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return nil, err
	}
	for i, name := range names {
		names[i] = filepath.Join(dir, name)
	}
	var files []*ast.File
	for _, name := range append(names, tests...) {
		file, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	pkg, err := doc.NewFromFiles(fset, files, path)
	if err != nil {
		return nil, err
	}
	p := &page{pkg: pkg, fset: fset}
	fmt.Fprintf(p, "# %s\n\n```go\nimport %q\n```\n\n", pkg.Name, path)
	p.text(pkg.Doc, pkg.Examples)
	p.values(pkg.Consts, pkg.Vars)
	p.funcs("", pkg.Funcs)
	for _, t := range pkg.Types {
		p.declare("type "+t.Name, t.Decl, t.Doc, t.Examples)
		p.values(t.Consts, t.Vars)
		p.funcs("", t.Funcs)
		p.funcs(t.Name+".", t.Methods)
	}
	return p.Bytes(), nil
}

// text writes a comment and its examples.
func (p *page) text(text string, examples []*doc.Example) {
	printer := p.pkg.Printer()
	printer.HeadingLevel = 3
	printer.DocLinkURL = func(l *comment.DocLink) string {
		name := cmp.Or(l.Recv, l.Name) // a method is below its type
		ours := strings.HasPrefix(l.ImportPath, root) && !strings.Contains(l.ImportPath, "/internal/")
		switch {
		case l.ImportPath == "":
			return "#" + name
		case ours:
			return pageName(l.ImportPath) + "#" + name
		}
		return "https://pkg.go.dev/" + l.ImportPath + "#" + name
	}
	p.Write(printer.Markdown(p.pkg.Parser().Parse(text)))
	for _, e := range examples {
		var code bytes.Buffer
		format.Node(&code, p.fset, e.Code)
		body := strings.TrimSuffix(strings.TrimPrefix(code.String(), "{"), "}")
		body, _, _ = strings.Cut(body, "// Output:")
		fmt.Fprintf(p, "\n**Example**\n\n```go\n%s\n```\n", strings.TrimSpace(strings.ReplaceAll(body, "\n\t", "\n")))
		if e.Output != "" {
			fmt.Fprintf(p, "\nprints\n\n```\n%s```\n", e.Output)
		}
	}
	p.WriteString("\n")
}

// declare writes a declaration below a heading whose anchor is its name.
func (p *page) declare(heading string, decl ast.Node, text string, examples []*doc.Example) {
	_, name, _ := strings.Cut(heading, " ")
	fmt.Fprintf(p, "## %s {#%s}\n\n", heading, name)
	p.code(decl)
	p.text(text, examples)
}

func (p *page) code(decl ast.Node) {
	p.WriteString("```go\n")
	format.Node(p, p.fset, decl)
	p.WriteString("\n```\n\n")
}

func (p *page) funcs(of string, funcs []*doc.Func) {
	for _, f := range funcs {
		p.declare("func "+of+f.Name, f.Decl, f.Doc, f.Examples)
	}
}

func (p *page) values(all ...[]*doc.Value) {
	for _, values := range all {
		for _, v := range values {
			for _, name := range v.Names {
				fmt.Fprintf(p, "<a id=%q></a>\n", name)
			}
			p.WriteString("\n")
			p.code(v.Decl)
			p.text(v.Doc, nil)
		}
	}
}
