// Package tempfile creates temporary files: see tempfile.go.
package tempfile

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/windows"
)

// Create returns a new file in dir that the system removes when it is closed. Its name begins
// with prefix. "" means os.TempDir.
func Create(dir, prefix string) (*os.File, error) {
	if dir == "" {
		dir = os.TempDir()
	}
	for {
		name := filepath.Join(dir, prefix+strconv.FormatUint(rand.Uint64(), 36))
		const flags = os.O_RDWR | os.O_CREATE | os.O_EXCL | windows.FILE_FLAG_DELETE_ON_CLOSE
		f, err := os.OpenFile(name, flags, 0o600)
		if !errors.Is(err, fs.ErrExist) {
			return f, err
		}
	}
}
