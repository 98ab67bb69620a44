// Overlay: files that put libraries without an interface for allocators on freehold.

package main

import (
	"embed"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"golang.org/x/mod/modfile"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/cmd/freehold/cli"
)

// overlayCommand writes an overlay for go build: Go files, and a list of the vendored files that they
// replace.
type overlayCommand struct {
	Libraries []string `arg:"" enum:"badger,pebble,ristretto" help:"badger, pebble or ristretto, from the module's vendor folder. Badger allocates through ristretto."`
	Dir       string   `default:"freehold-overlay" help:"Folder for the files. Run the go command in the same folder as this command."`
}

func (overlayCommand) Help() string {
	return examples(
		"freehold overlay badger pebble                          # then: go build -overlay=freehold-overlay/overlay.json",
	)
}

// A patch puts the memory of a library on freehold.
type patch struct {
	module string            // path of the library's module
	files  map[string]string // from a file of the module to its replacement in overlays, or "" for an empty file
	known  []string          // texts in these files in all versions that the overlay fits
}

var ristretto = patch{
	module: "github.com/dgraph-io/ristretto/v2",
	files:  map[string]string{"z/calloc_nojemalloc.go": "ristretto.go.txt"},
	known:  []string{"func CallocNoRef(n int, tag string) []byte"},
}

var patches = map[string]patch{
	"badger":    ristretto,
	"ristretto": ristretto,
	"pebble": {
		module: "github.com/cockroachdb/pebble/v2",
		files: map[string]string{
			"internal/manual/manual_cgo.go":   "",
			"internal/manual/manual_nocgo.go": "pebble.go.txt",
			"internal/buildtags/cgo_off.go":   "pebble_cgo.go.txt",
		},
		known: []string{"func New(purpose Purpose, n uintptr) Buf", "const Cgo = false"},
	},
}

//go:embed overlays
var overlays embed.FS

const core = "github.com/freehold-go/freehold"

func (c *overlayCommand) Run(s cli.Streams) error {
	goMod, err := os.ReadFile("go.mod")
	if err != nil {
		return cli.Usagef("run it in the folder of the module's go.mod: %w", err)
	}
	main := modfile.ModulePath(goMod)
	replace, files := map[string]string{}, map[string][]byte{}
	flags := ""
	for _, library := range c.Libraries {
		p := patches[library]
		folder, err := folderOf(p, main)
		if err == nil {
			err = c.add(replace, files, p, folder)
		}
		if err != nil {
			return err
		}
		if p.module != main {
			flags = "-mod=vendor " // with another mode of GOFLAGS or go.work the overlay would be ignored
		}
	}
	overlay := filepath.Join(c.Dir, "overlay.json")
	if err := os.MkdirAll(filepath.Dir(overlay), 0o755); err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(name, text, 0o644); err != nil {
			return err
		}
	}
	text := freehold.Must(json.MarshalIndent(map[string]any{"Replace": replace}, "", "\t"))
	if err := os.WriteFile(overlay, append(text, '\n'), 0o644); err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.Out, "Build with: go build %s-overlay=%s\n", flags, shellWord(overlay))
	return err
}

// plain words need no quotes in any shell.
var plain = regexp.MustCompile(`^[\w./-]+$`)

// shellWord quotes s for the shell if it must.
func shellWord(s string) string {
	switch {
	case plain.MatchString(s):
		return s
	case runtime.GOOS == "windows":
		return `"` + s + `"`
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// folderOf returns the folder of the library that p patches: in vendor, or the current one if main,
// the path of the main module, is the library's.
func folderOf(p patch, main string) (string, error) {
	if main == p.module {
		return "", nil
	}
	folder := filepath.Join("vendor", filepath.FromSlash(p.module))
	if _, err := os.Stat(folder); err != nil {
		return "", cli.Usagef("vendor has no %s: run go mod vendor in a module that imports it (the go command takes no overlay on the module cache)", p.module)
	}
	if files, _ := filepath.Glob(filepath.Join("vendor", filepath.FromSlash(core), "*.go")); len(files) == 0 {
		return "", cli.Usagef("vendor has no %s: import it in a package of the module and run go mod vendor", core)
	}
	return folder, nil
}

// add adds p, for the library in folder: its files to files, and their paths to replace.
func (c *overlayCommand) add(replace map[string]string, files map[string][]byte, p patch, folder string) error {
	old := ""
	for name := range p.files {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			return fmt.Errorf("this version of %s is unknown: %w", p.module, err)
		}
		old += string(text)
	}
	for _, text := range p.known {
		if !strings.Contains(old, text) {
			return fmt.Errorf("this version of %s is unknown: its files have no %q", p.module, text)
		}
	}
	for name, by := range p.files {
		text := []byte("package " + path.Base(path.Dir(name)) + "\n")
		if by != "" {
			text = freehold.Must(overlays.ReadFile("overlays/" + by))
		}
		file := filepath.Join(c.Dir, path.Base(name)+".txt") // so the go command finds no package there
		replace[filepath.Join(folder, name)] = file
		files[file] = text
	}
	return nil
}
