package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// An outFile is a result file, opened before a long run so that a wrong path
// is found then. Until the first write an existing file keeps its contents.
type outFile struct {
	path    string
	f       *os.File
	created bool // by us: removed again if there is nothing to write
	written bool
}

// openOut opens path for writing; "" gives a nil outFile, which takes no writes.
func openOut(flag, path string) (*outFile, error) {
	if path == "" {
		return nil, nil
	}
	_, err := os.Stat(path)
	created := os.IsNotExist(err)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return nil, usagef("%s: cannot write %s: %w", flag, path, err)
	}
	return &outFile{path: path, f: f, created: created}, nil
}

// write makes data the file's whole contents. It may be called again.
func (o *outFile) write(data []byte) error {
	if o == nil {
		return nil
	}
	o.written = true
	if info, err := o.f.Stat(); err == nil && info.Mode().IsRegular() {
		if err := o.f.Truncate(0); err != nil {
			return fmt.Errorf("writing %s: %w", o.path, err)
		}
		if _, err := o.f.Seek(0, 0); err != nil {
			return fmt.Errorf("writing %s: %w", o.path, err)
		}
	}
	if _, err := o.f.Write(data); err != nil {
		return fmt.Errorf("writing %s: %w", o.path, err)
	}
	return nil
}

// close closes the file, and removes one that was created for nothing.
func (o *outFile) close() error {
	if o == nil {
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

// openOuts opens all paths or none. Each path may serve one flag only.
func openOuts(paths map[string]string) (outFiles, error) {
	files, users := outFiles{}, map[string]string{}
	for flag, path := range paths {
		if path == "" {
			continue
		}
		abs, err := filepath.Abs(path)
		if err != nil {
			abs = path
		}
		if other, ok := users[abs]; ok {
			files.close()
			return nil, usagef("%s and %s both write %s", min(flag, other), max(flag, other), path)
		}
		users[abs] = flag
		f, err := openOut(flag, path)
		if err != nil {
			files.close()
			return nil, err
		}
		files[flag] = f
	}
	return files, nil
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
