//go:build !linux

package budget

import (
	"io/fs"
	"os"
)

func rootDirectory() fs.FS { return os.DirFS("/") }
