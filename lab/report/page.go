package report

import (
	"bytes"
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
	Title  string
	Why    string
	Result string // the finding in a sentence
	Charts []Chart
	Grids  []Grid
	Notes  []string
}

// drawn is a chart as the template takes it.
type drawn struct {
	Title string
	SVG   template.HTML
}

// Drawn draws the section's charts.
func (s Section) Drawn() (all []drawn, err error) {
	for _, c := range s.Charts {
		svg, err := c.svg()
		if err != nil {
			return nil, err
		}
		all = append(all, drawn{c.Title, svg})
	}
	return all, nil
}

// html renders the page.
func (p *Page) html() ([]byte, error) {
	var out bytes.Buffer
	if err := pageTemplate.Execute(&out, p); err != nil {
		return nil, fmt.Errorf("rendering the page: %w", err)
	}
	return out.Bytes(), nil
}

// Print writes a section's tables and notes for people.
func (s *Section) Print(w io.Writer) {
	fmt.Fprintf(w, "\n%s\n", cli.Strong(w, s.Title))
	if s.Why != "" {
		fmt.Fprintln(w, Wrapped(w, "", s.Why))
	}
	for _, g := range s.Grids {
		fmt.Fprintln(w)
		g.Print(w)
	}
	for _, n := range s.Notes {
		fmt.Fprintln(w, Wrapped(w, "  - ", n))
	}
}
