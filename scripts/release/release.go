// A release: the modules of a clone at one version, and a folder that serves them.

package main

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
	"golang.org/x/mod/zip"
)

// Of a version that is known to work: an older gorelease accepts less of a new go.mod.
const gorelease = "golang.org/x/exp/cmd/gorelease@v0.0.0-20261113113407-e3970619a1a4"

type release struct {
	version string
	dir     string // of the clone, whose HEAD is what is released
	proxy   string // GOPROXY's folder
	cache   string // GOMODCACHE: the usual one must not get modules that nobody released
	empty   string

	modules []member // each after those that it requires
}

// A member is a module that is released: one whose path says where it is.
type member struct {
	path string
	dir  string // below the root, "." for the root's
}

// tag returns the tag that the go command looks for.
func (m member) tag(version string) string { return path.Join(m.dir, version) }

func (r *release) tags() []string {
	var tags []string
	for _, m := range r.modules {
		tags = append(tags, m.tag(r.version))
	}
	return tags
}

// make writes, commits and tags the version, unless it is tagged, and fills the proxy.
func (r *release) make() error {
	step("the modules, and the last version")
	tagged, err := git(r.dir, "tag", "--list", r.version)
	if err != nil {
		return err
	}
	if tagged != "" {
		fmt.Printf("%s is tagged\n", r.version)
		if _, err := git(r.dir, "checkout", "--quiet", r.version); err != nil {
			return err
		}
	}
	if err := r.find(); err != nil {
		return err
	}
	if tagged != "" {
		for _, m := range r.modules {
			if err := r.publish(m, r.version, m.tag(r.version)); err != nil {
				return err
			}
		}
		return nil
	}
	last, err := r.last()
	if err != nil {
		return err
	}

	step("CHANGELOG.md, go.work and each go.mod")
	if err := r.writeRoot(); err != nil {
		return err
	}
	for _, m := range r.modules {
		if err := edit(filepath.Join(r.dir, m.dir, "go.mod"), r.require); err != nil {
			return err
		}
	}
	if err := r.commit(); err != nil {
		return err
	}
	for _, m := range r.modules {
		step(m.path)
		dir := filepath.Join(r.dir, m.dir)
		if _, err := r.goCommand(dir, "mod", "tidy"); err != nil {
			return err
		}
		if err := r.commit("--amend"); err != nil {
			return err
		}
		if err := r.compare(m, last); err != nil { // gorelease refuses a version that the proxy has
			return err
		}
		if err := r.publish(m, r.version, "HEAD"); err != nil {
			return err
		}
	}
	for _, t := range r.tags() {
		if _, err := git(r.dir, "tag", t); err != nil {
			return err
		}
	}
	return nil
}

// commit commits all that was written.
func (r *release) commit(flags ...string) error {
	if _, err := git(r.dir, "add", "--all"); err != nil {
		return err
	}
	args := []string{"commit", "--quiet", "--allow-empty", "--message", "all: " + r.version}
	if _, err := git(r.dir, "var", "GIT_COMMITTER_IDENT"); err != nil { // a rehearsal takes none
		args = append([]string{"-c", "user.name=release", "-c", "user.email=release@localhost"}, args...)
	}
	_, err := git(r.dir, append(args, flags...)...)
	return err
}

// find fills modules.
func (r *release) find() error {
	files, err := git(r.dir, "ls-files", "go.mod", "*/go.mod")
	if err != nil {
		return err
	}
	requires := map[member][]string{}
	root := ""
	for _, file := range strings.Fields(files) {
		text, err := os.ReadFile(filepath.Join(r.dir, file))
		if err != nil {
			return err
		}
		mod, err := modfile.Parse(file, text, nil)
		if err != nil {
			return err
		}
		m := member{path: mod.Module.Mod.Path, dir: path.Dir(file)}
		if m.dir == "." {
			root = m.path
		}
		for _, q := range mod.Require {
			requires[m] = append(requires[m], q.Mod.Path)
		}
		if len(mod.Replace) > 0 {
			requires[m] = append(requires[m], "replace")
		}
		r.modules = append(r.modules, m)
	}
	r.modules = slices.DeleteFunc(r.modules, func(m member) bool { return m.path != path.Join(root, m.dir) })
	slices.SortFunc(r.modules, func(a, b member) int { return strings.Compare(a.dir, b.dir) })

	var sorted []member
	for len(r.modules) > 0 {
		i := slices.IndexFunc(r.modules, func(m member) bool {
			return !slices.ContainsFunc(r.modules, func(other member) bool { return slices.Contains(requires[m], other.path) })
		})
		if i < 0 {
			return fmt.Errorf("modules require each other: %v", r.modules)
		}
		if m := r.modules[i]; slices.Contains(requires[m], "replace") {
			return fmt.Errorf("%s/go.mod has a replace directive, which go install refuses; go.work is the place for it", m.dir)
		}
		sorted = append(sorted, r.modules[i])
		r.modules = slices.Delete(r.modules, i, i+1)
	}
	r.modules = sorted
	return nil
}

// writeRoot writes the version into CHANGELOG.md and each go.work.
func (r *release) writeRoot() error {
	if err := edit(filepath.Join(r.dir, "CHANGELOG.md"), func(_ string, text []byte) ([]byte, error) {
		dated, err := datedChangelog(string(text), r.version, time.Now().UTC())
		return []byte(dated), err
	}); err != nil {
		return err
	}
	works, err := git(r.dir, "ls-files", "go.work", "*/go.work")
	if err != nil {
		return err
	}
	for _, file := range strings.Fields(works) {
		if err := edit(filepath.Join(r.dir, file), r.replace); err != nil {
			return err
		}
	}
	return nil
}

func edit(file string, change func(string, []byte) ([]byte, error)) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	changed, err := change(file, text)
	if err != nil || bytes.Equal(text, changed) {
		return err
	}
	return os.WriteFile(file, changed, 0o644)
}

func (r *release) has(modulePath string) bool {
	return slices.ContainsFunc(r.modules, func(m member) bool { return m.path == modulePath })
}

// require has a go.mod require this version of the other modules.
func (r *release) require(file string, text []byte) ([]byte, error) {
	mod, err := modfile.Parse(file, text, nil)
	if err != nil {
		return nil, err
	}
	for _, q := range mod.Require {
		if r.has(q.Mod.Path) {
			if err := mod.AddRequire(q.Mod.Path, r.version); err != nil {
				return nil, err
			}
		}
	}
	return mod.Format()
}

// replace has a go.work replace this version of the modules.
func (r *release) replace(file string, text []byte) ([]byte, error) {
	work, err := modfile.ParseWork(file, text, nil)
	if err != nil {
		return nil, err
	}
	for _, p := range slices.Clone(work.Replace) {
		from, to := p.Old, p.New // dropped, p has neither
		if from.Version != "" && from.Version != r.version && r.has(from.Path) {
			if err := work.DropReplace(from.Path, from.Version); err != nil {
				return nil, err
			}
			if err := work.AddReplace(from.Path, r.version, to.Path, to.Version); err != nil {
				return nil, err
			}
		}
	}
	work.Cleanup()
	return modfile.Format(work.Syntax), nil
}

// publish puts the module as the revision has it into the proxy.
func (r *release) publish(m member, version, revision string) error {
	dir := filepath.Join(r.proxy, filepath.FromSlash(m.path), "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	mod, err := output(r.dir, nil, "git", "cat-file", "blob", revision+":"+path.Join(m.dir, "go.mod"))
	if err != nil {
		return err
	}
	list, err := os.OpenFile(filepath.Join(dir, "list"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer list.Close()
	if _, err := fmt.Fprintln(list, version); err != nil {
		return err
	}
	base := filepath.Join(dir, version)
	if err := os.WriteFile(base+".mod", []byte(mod+"\n"), 0o644); err != nil {
		return err
	}
	info := fmt.Sprintf(`{"Version":%q,"Time":%q}`, version, time.Now().UTC().Format(time.RFC3339))
	if err := os.WriteFile(base+".info", []byte(info), 0o644); err != nil {
		return err
	}
	f, err := os.Create(base + ".zip")
	if err != nil {
		return err
	}
	defer f.Close()
	subdir := m.dir
	if subdir == "." {
		subdir = ""
	}
	return zip.CreateFromVCS(f, module.Version{Path: m.path, Version: version}, r.dir, revision, subdir)
}

// last returns the newest version that is tagged, and "" if none is.
func (r *release) last() (string, error) {
	tags, err := git(r.dir, "tag", "--list", "v*")
	if err != nil {
		return "", err
	}
	last := ""
	for _, t := range strings.Fields(tags) {
		if semver.Canonical(t) == t && (last == "" || semver.Compare(t, last) > 0) {
			last = t
		}
	}
	if last == "" {
		fmt.Printf("%s is the first version: there is no interface to compare with\n", r.version)
	} else if semver.Compare(r.version, last) < 0 {
		return "", fmt.Errorf("%s is older than %s, which is tagged", r.version, last)
	}
	return last, nil
}

// compare reports what the module's interface has changed since the last version, and
// fails if a version like this may not change it so.
func (r *release) compare(m member, last string) error {
	if last == "" {
		return nil
	}
	if tagged, err := git(r.dir, "tag", "--list", m.tag(last)); err != nil || tagged == "" {
		return err
	}
	if err := r.publish(m, last, m.tag(last)); err != nil {
		return err
	}
	said, err := r.goCommand(filepath.Join(r.dir, m.dir), "run", gorelease, "-base="+last, "-version="+r.version)
	if err != nil {
		return err
	}
	fmt.Println(said)
	// gorelease lets any version below v1 do that, and README promises otherwise.
	if semver.MajorMinor(last) == semver.MajorMinor(r.version) && strings.Contains(said, "compatible changes\n") {
		return fmt.Errorf("%s: a patch version must not change the interface", m.path)
	}
	return nil
}

// try uses each module as one who has nothing but its name does.
func (r *release) try() error {
	for _, m := range r.modules {
		step("built from outside: " + m.path)
		dir := filepath.Join(r.empty, filepath.FromSlash(m.dir), "user")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		for _, args := range [][]string{
			{"mod", "init", "example.com/user"},
			{"get", m.path + "@" + r.version},
			{"build", "-mod=mod", m.path + "/..."},
		} {
			if _, err := r.goCommand(dir, args...); err != nil {
				return err
			}
		}
	}
	for _, m := range r.modules {
		if !strings.HasPrefix(m.dir, "cmd/") {
			continue
		}
		step("installed: " + m.path)
		bin := filepath.Join(r.empty, "bin")
		if err := os.MkdirAll(bin, 0o755); err != nil {
			return err
		}
		if _, err := r.goCommand(bin, "install", m.path+"@"+r.version); err != nil {
			return err
		}
		program := filepath.Join(bin, path.Base(m.path))
		said, err := output(bin, nil, program, "version")
		if err != nil {
			return err
		}
		if want := path.Base(m.path) + " " + r.version + " "; !strings.HasPrefix(said, want) {
			return fmt.Errorf("%s version says %q, not %q", program, said, want)
		}
		fmt.Println(strings.SplitN(said, "\n", 2)[0])
	}
	return nil
}

// goCommand runs go as outside of the workspace, with the release to be had. The module cache
// that is there serves what others have released.
func (r *release) goCommand(dir string, args ...string) (string, error) {
	said, err := output(dir, nil, "go", "env", "GOMODCACHE", "GOPROXY")
	if err != nil {
		return "", err
	}
	cache, usual, _ := strings.Cut(said, "\n")
	return output(dir, []string{
		"GOWORK=off", "GOSUMDB=off", "GOFLAGS=-modcacherw -trimpath", "GOTOOLCHAIN=local",
		"GOBIN=" + filepath.Join(r.empty, "bin"), "GOMODCACHE=" + r.cache,
		fmt.Sprintf("GOPROXY=file://%s,file://%s/cache/download,%s", r.proxy, cache, usual),
	}, "go", args...)
}
