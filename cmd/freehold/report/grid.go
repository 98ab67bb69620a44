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
	Head   []string
	Colors []string // of columns with bars: classes of page.html; empty for a table
	Rows   [][]Cell
}

// A Cell is one figure. Value is the length of its bar, relative to the others of its row; it has
// no bar if Value is 0 or less.
type Cell struct {
	Text  string
	Value float64
}

// Add appends a row.
func (g *Grid) Add(cells ...string) {
	row := make([]Cell, len(cells))
	for i, c := range cells {
		row[i].Text = c
	}
	g.Rows = append(g.Rows, row)
}

// Bar returns the length of a cell's bar in percent of its row's longest.
func (g Grid) Bar(row []Cell, c Cell) float64 {
	most := 0.0
	for _, other := range row {
		most = max(most, other.Value)
	}
	if c.Value <= 0 {
		return 0
	}
	return 100 * c.Value / most
}

const (
	usualWidth = 80 // of what is no terminal, in characters
	indent     = 2
	padding    = 2  // of a column, both sides together
	narrowName = 14 // a name is not wrapped to less
)

// Print writes the grid to w, in colour if w takes it. Heads are wrapped to the width of their
// figures, and names to the rest of the terminal. Columns without room follow in a table below,
// with the names again.
func (g Grid) Print(w io.Writer) {
	width, _ := cli.TerminalSize(w)
	if width == 0 {
		width = usualWidth
	}
	widths := make([]int, len(g.Head))
	for i, name := range g.Head {
		for _, word := range strings.Fields(name) {
			widths[i] = max(widths[i], text.StringWidth(word))
		}
		for _, row := range g.Rows {
			widths[i] = max(widths[i], text.LongestLineLen(row[i].Text))
		}
	}
	for from := 1; from < len(g.Head); {
		room, to := width-indent-padding, from
		for to < len(g.Head) && (to == from || room-widths[to]-padding >= min(widths[0], narrowName)) {
			room -= widths[to] + padding
			to++
		}
		if from > 1 {
			io.WriteString(w, "\n")
		}
		g.print(w, max(room, narrowName), widths, from, to)
		from = to
	}
}

// print writes the names and some columns.
func (g Grid) print(w io.Writer, name int, widths []int, from, to int) {
	t := table.NewWriter()
	style := table.StyleLight
	style.Format.Header = text.FormatDefault
	style.Options.DrawBorder = false
	style.Options.SeparateColumns = false
	if cli.HasColor(w) {
		style.Color.Header = text.Colors{text.Bold}
	}
	t.SetStyle(style)
	columns := []table.ColumnConfig{{Number: 1, VAlign: text.VAlignBottom, VAlignHeader: text.VAlignBottom, WidthMax: name, WidthMaxEnforcer: text.WrapSoft}}
	for i, width := range widths[from:to] {
		columns = append(columns, table.ColumnConfig{
			Number: i + 2, Align: text.AlignRight, AlignHeader: text.AlignRight,
			VAlign: text.VAlignBottom, VAlignHeader: text.VAlignBottom, WidthMax: width, WidthMaxEnforcer: text.WrapSoft,
		})
	}
	t.SetColumnConfigs(columns)
	line := func(cell func(i int) string) (row table.Row) {
		row = table.Row{cell(0)}
		for i := from; i < to; i++ {
			row = append(row, cell(i))
		}
		return row
	}
	t.AppendHeader(line(func(i int) string { return g.Head[i] }))
	for _, row := range g.Rows {
		t.AppendRow(line(func(i int) string { return row[i].Text }))
	}
	for line := range strings.Lines(t.Render() + "\n") {
		io.WriteString(w, strings.Repeat(" ", indent)+strings.TrimRight(line, " \n")+"\n")
	}
}
