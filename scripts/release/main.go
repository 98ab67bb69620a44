// Release makes a version of all modules of this repository, and tries it as its
// users get it.
//
//	go run ./scripts/release [-tag] VERSION
//
// All is done in a clone of HEAD, in a temporary folder:
//
//   - The section of the version in CHANGELOG.md must have entries. It gets the
//     day's date, unless it has one.
//   - Each go.mod requires the version of each other module, and go.work replaces
//     that version. The hashes in each go.sum are those of the tags to come: a module is
//     written after those that it requires.
//   - Each module is put into a module proxy of files, as the proxy
//     makes it from a tag, and compared with the last tag by gorelease.
//   - In an empty folder, each module is required and built, and the command installed and run.
//
// With -tag, the commit and its tags come into this repository, whose branch is moved
// to the commit. Nothing is pushed: the last line says how. A version that is tagged already
// is tried as its tags have it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/mod/semver"
)

func main() {
	tag := flag.Bool("tag", false, "bring the commit and its tags into this repository")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: release [-tag] VERSION")
		os.Exit(2)
	}
	interrupted, _ = signal.NotifyContext(interrupted, os.Interrupt, syscall.SIGTERM)
	if err := run(flag.Arg(0), *tag); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// interrupted is done when the user has ended the program: then no command runs on and none starts,
// and the temporary folder is removed.
var interrupted = context.Background()

// run releases the version of the repository that the working directory is in.
func run(version string, tag bool) (err error) {
	if !semver.IsValid(version) || semver.Canonical(version) != version {
		return fmt.Errorf("%q is no version: v0.1.0 is one", version)
	}
	repo, err := git(".", "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	changes, err := git(repo, "status", "--porcelain")
	if err != nil {
		return err
	}
	if changes != "" {
		if tag {
			return fmt.Errorf("what is not committed would not be released:\n%s", changes)
		}
		fmt.Println("what is not committed is left out")
	}

	temp, err := os.MkdirTemp("", "release")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	clone := filepath.Join(temp, "clone")
	if _, err := git(repo, "clone", "--quiet", "--shared", ".", clone); err != nil {
		return err
	}
	r := &release{version: version, dir: clone, proxy: filepath.Join(temp, "proxy"), cache: filepath.Join(temp, "cache"), empty: filepath.Join(temp, "empty")}
	defer step("")
	if err := r.make(); err != nil {
		return err
	}
	if err := r.try(); err != nil {
		return err
	}
	if !tag {
		return nil
	}
	return r.bring(repo)
}

// bring moves the branch of the repository to the release's commit, and then tags it: a branch that
// has moved on meanwhile gets no tags. All tags come at once.
func (r *release) bring(repo string) error {
	tags := r.tags()
	head, err := git(r.dir, "rev-parse", "HEAD")
	if err != nil {
		return err
	}
	fetch := []string{"fetch", "--quiet", "--no-tags", "--atomic", r.dir}
	if _, err := git(repo, append(fetch, "HEAD")...); err != nil {
		return err
	}
	if _, err := git(repo, "merge", "--quiet", "--ff-only", head); err != nil {
		return err
	}
	for _, t := range tags {
		fetch = append(fetch, "refs/tags/"+t+":refs/tags/"+t)
	}
	if _, err := git(repo, fetch...); err != nil {
		return err
	}
	fmt.Printf("to publish it: git push --atomic origin HEAD %s\n", strings.Join(tags, " "))
	return nil
}

// step says how long the step before took, and what begins.
var step = func() func(string) {
	var last string
	var start time.Time
	return func(name string) {
		if last != "" {
			fmt.Printf("%6.1f s  %s\n", time.Since(start).Seconds(), last)
		}
		last, start = name, time.Now()
	}
}()

func git(dir string, args ...string) (string, error) { return output(dir, nil, "git", args...) }

// output runs a command and returns what it prints, without the space around it.
func output(dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(interrupted, name, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // go removes files of its own then
	cmd.WaitDelay = 10 * time.Second
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			out = append(out, exit.Stderr...)
		}
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out)), nil
}
