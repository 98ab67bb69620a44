package main

import (
	"errors"
	"fmt"
	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"io"
	"os"
	"path/filepath"
)

// stdoutPath is the path that stands for standard output.
const stdoutPath = "-"

// A filePath names a result file on the command line; "" is a flag that was not
// given.
type filePath string

func (p *filePath) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		return errors.New("the name of a file is missing; - is standard output")
	}
	*p = filePath(text)
	return nil
}

// An outFile is a result file, opened before a long run so that a wrong path
// is found then. Until the first write an existing file keeps its contents.
type outFile struct {
	path    string
	w       io.Writer
	f       *os.File // w, nil if it is standard output
	regular bool     // its contents can be replaced
	sent    int      // bytes written, if they cannot be replaced
	created bool     // by us: removed again if there is nothing to write
	written bool
}

// openOut opens path for writing; "-" is stdout.
func openOut(flag, path string, stdout io.Writer) (*outFile, error) {
	if path == stdoutPath {
		return &outFile{path: "standard output", w: stdout}, nil
	}
	_, err := os.Stat(path)
	created := os.IsNotExist(err)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return nil, cli.Usagef("%s: cannot write %s: %w", flag, path, err)
	}
	info, err := f.Stat()
	return &outFile{path: path, w: f, f: f, regular: err == nil && info.Mode().IsRegular(), created: created}, nil
}

// write makes data the file's whole contents. It may be called again; what is
// no regular file, such as a pipe, gets what data has beyond the last call's.
func (o *outFile) write(data []byte) error {
	if o == nil {
		return nil
	}
	o.written = true
	if o.regular {
		if err := o.f.Truncate(0); err != nil {
			return fmt.Errorf("writing %s: %w", o.path, err)
		}
		if _, err := o.f.Seek(0, 0); err != nil {
			return fmt.Errorf("writing %s: %w", o.path, err)
		}
	} else {
		data = data[o.sent:]
	}
	n, err := o.w.Write(data)
	o.sent += n
	if err != nil {
		return fmt.Errorf("writing %s: %w", o.path, err)
	}
	return nil
}

// close closes the file, and removes one that was created for nothing.
func (o *outFile) close() error {
	if o == nil || o.f == nil {
		return nil
	}
	if err := o.f.Close(); err != nil {
		return fmt.Errorf("writing %s: %w", o.path, err)
	}
	if o.created && !o.written {
		return os.Remove(o.path)
	}
	return nil
}

// outFiles are the result files of one run, by flag.
type outFiles map[string]*outFile

// render writes what make returns to the file of a flag, if that was given.
func (files outFiles) render(flag string, make func() ([]byte, error)) error {
	f := files[flag]
	if f == nil {
		return nil
	}
	data, err := make()
	if err != nil {
		return err
	}
	return f.write(data)
}

// openOuts opens all paths that are not empty, or none. Each may serve one flag
// only. text is where the report for people goes then: standard output, or
// standard error if a file's path is "-".
func openOuts(paths map[string]filePath, st cli.Streams) (files outFiles, text io.Writer, err error) {
	files, text = outFiles{}, st.Out
	users := map[string]string{}
	for flag, given := range paths {
		if given == "" {
			continue
		}
		path := string(given)
		key := path
		if path == stdoutPath {
			text = st.Err
		} else if abs, err := filepath.Abs(path); err == nil {
			key = abs
		}
		if other, ok := users[key]; ok {
			files.close()
			return nil, nil, cli.Usagef("%s and %s both write %s", min(flag, other), max(flag, other), path)
		}
		users[key] = flag
		f, err := openOut(flag, path, st.Out)
		if err != nil {
			files.close()
			return nil, nil, err
		}
		files[flag] = f
	}
	return files, text, nil
}

// close closes all of them and returns the first error.
func (fs outFiles) close() (err error) {
	for _, f := range fs {
		if e := f.close(); err == nil {
			err = e
		}
	}
	return err
}
