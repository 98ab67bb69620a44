// Package report shows measurements: as text, as CSV and as a page with charts.
package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// A Page is a report in one HTML file, which needs no network.
type Page struct {
	Title    string
	Lead     string
	Facts    []string // how it was measured: machine, command, flags
	Sections []Section
}

// A Section is one part of a page.
type Section struct {
	Title   string
	Why     string
	Results []string // the findings, each a sentence or two
	Charts  []Chart
	Grids   []Grid
	Notes   []string
}

// Write writes the page.
func (p *Page) Write(w io.Writer) error { return pageTemplate.Execute(w, p) }

// Print writes a section's tables and notes for people.
func (s *Section) Print(w io.Writer) {
	fmt.Fprintf(w, "\n%s\n%s\n", cli.Strong(w, s.Title), Wrapped(w, "", s.Why))
	for _, g := range s.Grids {
		fmt.Fprintln(w)
		g.Print(w)
	}
	for _, n := range s.Notes {
		fmt.Fprintln(w, Wrapped(w, "  - ", n))
	}
}
