package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/test/filetest"
	"github.com/freehold-go/freehold/internal/vm"
)

// onEachSystem calls f for each kind of system: files need no name, cannot be without one, or
// cannot get one later, as without /proc.
func onEachSystem(t *testing.T, f func(t *testing.T)) {
	realUnnamed, realLink := unnamed, link
	defer func() { unnamed, link = realUnnamed, realLink }()
	t.Run("as it is", f)
	link = func(_ *os.File, name string) error {
		return &os.LinkError{Op: "linkat", New: name, Err: fs.ErrNotExist}
	}
	t.Run("no /proc", f)
	unnamed = func(string, uint32) (*os.File, error) { return nil, errors.ErrUnsupported }
	t.Run("no files without a name", f)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	filetest.Must(t, errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chmod(path, 0o640)))
}

// want checks that dir has exactly these files, with these contents.
func want(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	entries := freehold.Must(os.ReadDir(dir))
	found := 0
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		found++
		text, ok := files[e.Name()]
		got, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if !ok || err != nil || string(got) != text {
			t.Errorf("%s has %q, %v, want %q", e.Name(), got, err, text)
		}
	}
	if found < len(files) {
		t.Errorf("the directory has %v, want %v", entries, files)
	}
}

func create(t *testing.T, path, text string) *File {
	t.Helper()
	f := freehold.Must(Create(path))
	freehold.Must(f.WriteString(text))
	return f
}

func TestCommitReplaces(t *testing.T) {
	onEachSystem(t, func(t *testing.T) {
		dir := t.TempDir()
		path := filepath.Join(dir, "file")
		for _, old := range []string{"", "old contents"} {
			if old != "" {
				write(t, path, old)
			}
			f := create(t, path, "new")
			if got, _ := os.ReadFile(path); string(got) != old {
				t.Errorf("before Commit the file has %q", got)
			}
			filetest.Must(t, f.Commit())
			want(t, dir, map[string]string{"file": "new"})
			if err := f.Close(); err != nil {
				t.Errorf("Close after Commit: %v", err)
			}
			want(t, dir, map[string]string{"file": "new"})
		}
		if info, _ := os.Stat(path); runtime.GOOS != "windows" && info.Mode() != 0o640 {
			t.Errorf("the permissions are %v, not those of the old file", info.Mode())
		}
	})
}

func TestCloseDiscards(t *testing.T) {
	onEachSystem(t, func(t *testing.T) {
		dir := t.TempDir()
		path := filepath.Join(dir, "file")
		write(t, path, "old")
		for _, path := range []string{path, filepath.Join(dir, "another")} {
			f := create(t, path, "new")
			for range 2 {
				if err := f.Close(); err != nil {
					t.Error(err)
				}
			}
			if err := f.Commit(); err != nil {
				t.Errorf("Commit after Close: %v", err)
			}
		}
		want(t, dir, map[string]string{"file": "old"})
	})
}

// An error of Commit leaves the old file and no other.
func TestCommitFails(t *testing.T) {
	onEachSystem(t, func(t *testing.T) {
		dir := t.TempDir()
		path := filepath.Join(dir, "file")
		f := create(t, path, "new")
		if err := os.Mkdir(path, 0o700); err != nil { // no file replaces a directory
			t.Fatal(err)
		}
		if err := f.Commit(); err == nil {
			t.Error("a directory was replaced")
		}
		filetest.Must(t, os.Remove(path))
		want(t, dir, nil)

		f = create(t, path, "new")
		f.File.Close()
		if err := f.Commit(); err == nil {
			t.Error("a closed file was committed")
		}
		want(t, dir, nil)

		write(t, path, "old")
		f = create(t, path, "new")
		f.File.Close()
		if err := f.Commit(); !errors.Is(err, os.ErrClosed) {
			t.Errorf("%v, want os.ErrClosed", err)
		}
		want(t, dir, map[string]string{"file": "old"})
	})
}

// CommitSynced syncs the file while the path has the old one, then the directory.
func TestCommitSynced(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skip("directories are not synced")
	}
	onEachSystem(t, func(t *testing.T) {
		dir := t.TempDir()
		path := filepath.Join(dir, "file")
		for failing := range 3 { // the sync that fails; the last round has only two
			write(t, path, "old")
			f := create(t, path, "new")
			var at []string // what the path has at each sync
			restore := vm.SetFault(func(op vm.Op) error {
				if op != vm.OpSyncFile {
					return nil
				}
				text, _ := os.ReadFile(path)
				if at = append(at, string(text)); len(at) == failing+1 {
					return errors.ErrUnsupported
				}
				return nil
			})
			err := f.CommitSynced()
			restore()
			if syncs := []string{"old", "new"}[:min(failing+1, 2)]; !slices.Equal(at, syncs) || errors.Is(err, errors.ErrUnsupported) != (failing < 2) {
				t.Errorf("the syncs find %q, want %q: %v", at, syncs, err)
			}
			want(t, dir, map[string]string{"file": []string{"old", "new", "new"}[failing]})
		}
	})
}

// Commit returns the error if the file cannot be named.
func TestLinkFails(t *testing.T) {
	dir := t.TempDir()
	f := create(t, filepath.Join(dir, "file"), "new")
	if f.temp != "" {
		t.Skip("a system that needs names")
	}
	defer func(real func(*os.File, string) error) { link = real }(link)
	refusals := []error{fs.ErrExist, fs.ErrExist, fs.ErrExist, fs.ErrPermission}
	link = func(*os.File, string) error {
		err := refusals[0]
		refusals = refusals[1:]
		return err
	}
	if err := f.Commit(); !errors.Is(err, fs.ErrPermission) || len(refusals) > 0 {
		t.Errorf("%v, and %d refusals left", err, len(refusals))
	}
	want(t, dir, nil)
}

func TestSymbolicLinksAreFollowed(t *testing.T) {
	onEachSystem(t, func(t *testing.T) {
		dir := t.TempDir()
		if err := errors.Join(
			os.MkdirAll(filepath.Join(dir, "a", "b"), 0o700),
			os.Symlink(filepath.Join("a", "b"), filepath.Join(dir, "ab")),
			os.Symlink("first", filepath.Join(dir, "a", "link")),
			os.Symlink(filepath.Join(dir, "a", "link"), filepath.Join(dir, "twice")),
			os.Symlink("ab"+string(filepath.Separator)+".."+string(filepath.Separator)+"second", filepath.Join(dir, "up")),
			os.Symlink("loop", filepath.Join(dir, "loop")),
		); err != nil {
			t.Skip(err)
		}
		for range 2 { // the targets do not exist in the first round
			for _, name := range []string{"twice", "up"} {
				f := create(t, filepath.Join(dir, name), name)
				filetest.Must(t, f.Commit())
				if info, err := os.Lstat(filepath.Join(dir, name)); err != nil || info.Mode().Type() != fs.ModeSymlink {
					t.Errorf("%s is no link any more: %v, %v", name, info, err)
				}
			}
			want(t, filepath.Join(dir, "a"), map[string]string{"first": "twice", "second": "up", "link": "twice"})
		}
		if _, err := Create(filepath.Join(dir, "loop")); err == nil || !strings.Contains(err.Error(), "too many") {
			t.Errorf("a link to itself: %v", err)
		}
	})
}

func TestDevicesAreWritten(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("if it fails, root has replaced the device: TestCommitInPlace does without")
	}
	f := freehold.Must(Create(os.DevNull))
	if !f.InPlace() || f.Path() != os.DevNull {
		t.Errorf("in place: %v, path %s", f.InPlace(), f.Path())
	}
	if _, err := f.WriteString("text"); err != nil {
		t.Error(err)
	}
	if err := f.Commit(); err != nil {
		t.Error(err)
	}
}

func TestCreateFails(t *testing.T) {
	dir := t.TempDir()
	if _, err := Create(dir); err == nil || err.Error() != "create "+dir+": is a directory" {
		t.Errorf("a directory: %v", err)
	}
	if _, err := Create(""); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no path: %v", err)
	}
	missing := filepath.Join(dir, "missing", "file")
	if _, err := Create(missing); !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), "create "+missing+": ") {
		t.Errorf("in a missing directory: %v", err)
	}
	want(t, dir, nil)
}

// Create refuses a name that is too long for the system. A file with the longest name can be
// replaced.
func TestLongNames(t *testing.T) {
	onEachSystem(t, func(t *testing.T) {
		dir := t.TempDir()
		files := map[string]string{}
		for n := 200; ; n++ {
			name := strings.Repeat("n", n)
			path := filepath.Join(dir, name)
			if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
				if _, created := Create(path); created == nil {
					t.Errorf("a name of %d bytes: %v", n, err)
				}
				break
			}
			for range 2 { // create a new file, then replace it
				if err := create(t, path, "new").Commit(); err != nil {
					t.Fatalf("a name of %d bytes: %v", n, err)
				}
			}
			files[name] = "new"
		}
		want(t, dir, files)
	})
}

// A relative path is relative to the working directory.
func TestRelativePath(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	filetest.Must(t, create(t, "file", "new").Commit())
	want(t, dir, map[string]string{"file": "new"})
}
