//go:build !unix

package atomicfile

import "os"

func keepOwner(*os.File, os.FileInfo) {}
