package report

import (
	"io"
	"strings"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// A Grid is a table of results, for the terminal and for the page alike. The
// first column names the row; the others are figures.
type Grid struct {
	Head []string
	Rows [][]string
}

// Add appends a row.
func (g *Grid) Add(cells ...string) { g.Rows = append(g.Rows, cells) }

// usualWidth is the width, in characters, of what is no terminal.
const usualWidth = 80

// Print writes the grid to w as wide as w is, in colour if w takes it.
func (g *Grid) Print(w io.Writer) {
	width, _ := cli.TerminalSize(w)
	if width == 0 {
		width = usualWidth
	}
	for i, part := range g.fit(width) {
		if i > 0 {
			io.WriteString(w, "\n")
		}
		part.render(w)
	}
}

const (
	indent     = 2
	padding    = 2  // of a column, both sides together
	narrowName = 14 // a name is not wrapped to less
)

// fit returns the grid as grids that are at most width wide. Where it is too wide
// heads wrap first, then the names of rows; then some columns go into another
// grid, with the names repeated. One column is left as wide as it is.
func (g *Grid) fit(width int) []Grid {
	natural, wrapped := indent, make([]int, len(g.Head))
	name := 0
	for i, head := range g.Head {
		cells := 0
		for _, r := range g.Rows {
			cells = max(cells, text.LongestLineLen(r[i]))
		}
		widest := max(cells, text.LongestLineLen(head))
		natural += widest + padding
		if i == 0 {
			name = widest
			continue
		}
		wrapped[i] = cells
		for word := range strings.FieldsSeq(head) {
			wrapped[i] = max(wrapped[i], text.LongestLineLen(word))
		}
	}
	if natural <= width {
		return []Grid{*g}
	}

	var parts []Grid
	for from := 1; from < len(g.Head); {
		room, to := width-indent-padding, from
		for to < len(g.Head) && (to == from || room-wrapped[to]-padding >= min(name, narrowName)) {
			room -= wrapped[to] + padding
			to++
		}
		wrapped[0] = min(name, max(room, narrowName))
		part := Grid{Head: []string{text.WrapSoft(g.Head[0], wrapped[0])}}
		for i := from; i < to; i++ {
			part.Head = append(part.Head, text.WrapSoft(g.Head[i], wrapped[i]))
		}
		for _, r := range g.Rows {
			cells := []string{text.WrapSoft(r[0], wrapped[0])}
			part.Add(append(cells, r[from:to]...)...)
		}
		parts, from = append(parts, part), to
	}
	return parts
}

// render writes the grid as it is.
func (g *Grid) render(w io.Writer) {
	t := table.NewWriter()
	style := table.StyleLight
	style.Format.Header = text.FormatDefault
	style.Options.DrawBorder = false
	style.Options.SeparateColumns = false
	if cli.HasColor(w) {
		style.Color.Header = text.Colors{text.Bold}
	}
	t.SetStyle(style)

	var columns []table.ColumnConfig
	for i := range g.Head {
		align := text.AlignRight
		if i == 0 {
			align = text.AlignLeft
		}
		columns = append(columns, table.ColumnConfig{
			Number: i + 1, Align: align, AlignHeader: align,
			VAlign: text.VAlignBottom, VAlignHeader: text.VAlignBottom,
		})
	}
	t.SetColumnConfigs(columns)
	t.AppendHeader(row(g.Head))
	for _, r := range g.Rows {
		t.AppendRow(row(r))
	}
	for line := range strings.Lines(t.Render() + "\n") {
		io.WriteString(w, strings.Repeat(" ", indent)+strings.TrimRight(line, " \n")+"\n")
	}
}

func row(cells []string) table.Row {
	r := make(table.Row, len(cells))
	for i, c := range cells {
		r[i] = c
	}
	return r
}
