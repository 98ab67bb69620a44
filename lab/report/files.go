package report

import (
	"fmt"
	"io"
	"os"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
)

// Files are the result files of a run. "" is a path that was not given, and - is standard output.
type Files struct {
	CSV, HTML string
	out       io.Writer
	sent      int // bytes of CSV on standard output
}

// Open finds out whether the files can be written, before a long run. Those that are there keep
// their contents until then. Text is where the report for people goes: standard output, or standard
// error if a file goes there.
func (f *Files) Open(st cli.Streams) (text io.Writer, err error) {
	if f.CSV == f.HTML && f.CSV != "" {
		return nil, cli.Usagef("--csv and --html both write %s", f.CSV)
	}
	f.out, text = st.Out, st.Out
	for flag, path := range map[string]string{"--csv": f.CSV, "--html": f.HTML} {
		if path == "-" {
			text = st.Err
		}
		if path == "" || path == "-" {
			continue
		}
		_, missing := os.Stat(path)
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o644)
		if err != nil {
			return nil, cli.Usagef("%s: cannot write %s: %w", flag, path, err)
		}
		file.Close()
		if os.IsNotExist(missing) {
			_ = os.Remove(path)
		}
	}
	return text, nil
}

// WriteCSV replaces what it wrote before. Standard output gets what is new.
func (f *Files) WriteCSV(data []byte) error {
	if f.CSV == "-" {
		data, f.sent = data[f.sent:], len(data)
	}
	return f.write(f.CSV, data)
}

// WriteHTML writes a page.
func (f *Files) WriteHTML(p *Page) error {
	if f.HTML == "" {
		return nil
	}
	data, err := p.html()
	if err != nil {
		return err
	}
	return f.write(f.HTML, data)
}

func (f *Files) write(path string, data []byte) (err error) {
	switch path {
	case "":
		return nil
	case "-":
		_, err = f.out.Write(data)
	default:
		err = os.WriteFile(path, data, 0o644)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}
