//go:build !linux

package sysmem

import (
	"io/fs"
	"os"
)

func Root() fs.FS { return os.DirFS("/") }
