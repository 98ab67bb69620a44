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
	Colors []string // of columns with bars: classes of page.html
	Rows   [][]Cell
}

// A Cell is one figure. Value is the length of its bar beside the others of its row; none if it is
// not above 0.
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

// Bar returns the height of a cell's bar in percent of its row's highest.
func (g Grid) Bar(row []Cell, c Cell) float64 {
	most := 0.0
	for _, other := range row {
		most = max(most, other.Value)
	}
	if len(g.Colors) == 0 || c.Value <= 0 {
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
// figures, and names to what is left of the terminal.
func (g Grid) Print(w io.Writer) {
	room, _ := cli.TerminalSize(w)
	if room == 0 {
		room = usualWidth
	}
	t := table.NewWriter()
	style := table.StyleLight
	style.Format.Header = text.FormatDefault
	style.Options.DrawBorder = false
	style.Options.SeparateColumns = false
	if cli.HasColor(w) {
		style.Color.Header = text.Colors{text.Bold}
	}
	t.SetStyle(style)

	rows := make([]table.Row, len(g.Rows))
	columns := make([]table.ColumnConfig, len(g.Head))
	head := table.Row{}
	for i, name := range g.Head {
		head = append(head, name)
		widest := 0
		for _, word := range strings.Fields(name) {
			widest = max(widest, text.StringWidth(word))
		}
		for j := range g.Rows {
			rows[j] = append(rows[j], g.Rows[j][i].Text)
			widest = max(widest, text.StringWidth(g.Rows[j][i].Text))
		}
		columns[i] = table.ColumnConfig{
			Number: i + 1, Align: text.AlignRight, AlignHeader: text.AlignRight,
			VAlign: text.VAlignBottom, VAlignHeader: text.VAlignBottom,
			WidthMax: widest, WidthMaxEnforcer: text.WrapSoft,
		}
		if i > 0 {
			room -= widest + padding
		}
	}
	columns[0].Align, columns[0].AlignHeader = text.AlignLeft, text.AlignLeft
	columns[0].WidthMax = max(room-indent-padding, narrowName)
	t.SetColumnConfigs(columns)
	t.AppendHeader(head)
	t.AppendRows(rows)
	for line := range strings.Lines(t.Render() + "\n") {
		io.WriteString(w, strings.Repeat(" ", indent)+strings.TrimRight(line, " \n")+"\n")
	}
}
