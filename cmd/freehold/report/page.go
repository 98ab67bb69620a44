// Package report shows measurements: as text, as CSV and as a page with charts.
package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// A Page is a report in one HTML file, which needs no network: a summary, a legend of all colours,
// and the sections. It fits a screen of 400 pixels.
type Page struct {
	Title    string
	Lead     string
	Facts    []string // about the measurement: machine, command, flags
	Sections []Section
}

// An Entry is a colour of the legend, and its meaning.
type Entry struct{ Color, Name string }

// Legend returns the colours of all sections, in order of appearance. If names such as "Go heap"
// and "Go heap, limit" share a colour, the first one is in the legend.
func (p *Page) Legend() (all []Entry) {
	add := func(color, name string) {
		for _, e := range all {
			if e.Color == color && (name == e.Name || strings.HasPrefix(name, e.Name+",")) {
				return
			}
		}
		all = append(all, Entry{color, name})
	}
	for _, sec := range p.Sections {
		for _, g := range sec.Grids {
			for i, color := range g.Colors {
				if color != "" {
					add(color, g.Head[i])
				}
			}
		}
		for _, c := range sec.Charts {
			for _, l := range c.Lines {
				add(l.Color, l.Name)
			}
		}
	}
	return all
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

// PrintResults writes the results of all sections.
func (p *Page) PrintResults(w io.Writer) {
	for _, sec := range p.Sections {
		for _, r := range sec.Results {
			fmt.Fprintln(w, Wrapped(w, "- ", r))
		}
	}
}

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
