package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// A page is a report in one HTML file, which needs no network.
type page struct {
	Title    string
	Lead     string
	Facts    []string // how it was measured: machine, command, flags
	Sections []section
}

// A section is one part of a page.
type section struct {
	Title  string
	Why    string
	Result string // the finding in a sentence
	Charts []chart
	Grids  []grid
	Notes  []string
	CSV    []byte // the figures, for programs; nil if there are none
}

// drawn is a chart as the template takes it.
type drawn struct {
	Title string
	SVG   template.HTML
}

// Drawn draws the section's charts.
func (s section) Drawn() (all []drawn, err error) {
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
func (p *page) html() ([]byte, error) {
	var out bytes.Buffer
	if err := pageTemplate.Execute(&out, p); err != nil {
		return nil, fmt.Errorf("rendering the page: %w", err)
	}
	return out.Bytes(), nil
}
