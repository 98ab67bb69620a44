package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/test/filetest"
)

const corePath = "github.com/freehold-go/freehold"

// Once the core and this module are tagged, "go install ...@latest" works. The
// tags are a folder that stands for the module proxy; everything else comes from
// the module cache, or from the usual proxy where that has lost it.
func TestInstallOfARelease(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the command anew")
	}
	goMod := freehold.Must(os.ReadFile("go.mod"))
	mod := freehold.Must(modfile.Parse("go.mod", goMod, nil))
	core := module.Version{Path: corePath}
	for _, r := range mod.Require {
		if r.Mod.Path == corePath {
			core.Version = r.Mod.Version
		}
	}
	proxy, bin := t.TempDir(), t.TempDir()
	release(t, proxy, core, "../..")
	release(t, proxy, module.Version{Path: mod.Module.Mod.Path, Version: core.Version}, ".")

	said, err := exec.CommandContext(t.Context(), "go", "env", "GOMODCACHE", "GOPROXY").Output()
	if err != nil {
		t.Skipf("needs the go command: %v", err)
	}
	cache, usual, _ := strings.Cut(strings.TrimSpace(string(said)), "\n")
	cmd := exec.CommandContext(t.Context(), "go", "install", mod.Module.Mod.Path+"@latest")
	cmd.Dir = bin // outside of the workspace
	cmd.Env = append(os.Environ(), "GOBIN="+bin, "GOMODCACHE="+t.TempDir(), "GOFLAGS=-modcacherw -trimpath",
		"GOWORK=off", "GOSUMDB=off", "GONOPROXY=none", "GOTOOLCHAIN=local",
		fmt.Sprintf("GOPROXY=file://%s,file://%s/cache/download,%s", proxy, cache, usual))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	code, out, errs := processOf(t, nil, filepath.Join(bin, "freehold"), "version")
	if code != 0 || !strings.HasPrefix(out, "freehold "+core.Version+" ") {
		t.Errorf("exit code %d, %q, %q, want version %s", code, out, errs, core.Version)
	}
}

// release puts the module in dir into the proxy's folder, as a tag does.
func release(t *testing.T, proxy string, m module.Version, dir string) {
	t.Helper()
	versions := filepath.Join(proxy, m.Path, "@v")
	filetest.Must(t, os.MkdirAll(versions, 0o755))
	goMod := freehold.Must(os.ReadFile(filepath.Join(dir, "go.mod")))
	for name, text := range map[string]string{
		"list":              m.Version + "\n",
		m.Version + ".info": fmt.Sprintf(`{"Version":%q,"Time":"2026-01-01T00:00:00Z"}`, m.Version),
		m.Version + ".mod":  string(goMod),
	} {
		filetest.Must(t, os.WriteFile(filepath.Join(versions, name), []byte(text), 0o644))
	}
	f := freehold.Must(os.Create(filepath.Join(versions, m.Version+".zip")))
	defer f.Close()
	filetest.Must(t, zip.CreateFromDir(f, m, dir))
}
