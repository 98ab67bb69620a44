//go:build !unix

package atomicfile

func (f *File) keepAttributes() error { return f.Chmod(f.old.Mode().Perm()) }
