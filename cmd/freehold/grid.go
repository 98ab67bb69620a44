package main

import (
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// A grid is a table of results, for the terminal and for the page alike. The
// first column names the row; the others are figures.
type grid struct {
	Head []string
	Rows [][]string
}

// add appends a row.
func (g *grid) add(cells ...string) { g.Rows = append(g.Rows, cells) }

// print writes the grid to w, in colour if w takes it.
func (g *grid) print(w io.Writer) {
	t := table.NewWriter()
	style := table.StyleLight
	style.Format.Header = text.FormatDefault
	style.Options.DrawBorder = false
	style.Options.SeparateColumns = false
	if hasColor(w) {
		style.Color.Header = text.Colors{text.Bold}
	}
	t.SetStyle(style)

	var columns []table.ColumnConfig
	for i := range g.Head {
		align := text.AlignRight
		if i == 0 {
			align = text.AlignLeft
		}
		columns = append(columns, table.ColumnConfig{Number: i + 1, Align: align, AlignHeader: align})
	}
	t.SetColumnConfigs(columns)
	t.AppendHeader(row(g.Head))
	for _, r := range g.Rows {
		t.AppendRow(row(r))
	}
	for line := range strings.Lines(t.Render() + "\n") {
		io.WriteString(w, "  "+strings.TrimRight(line, " \n")+"\n")
	}
}

func row(cells []string) table.Row {
	r := make(table.Row, len(cells))
	for i, c := range cells {
		r[i] = c
	}
	return r
}
