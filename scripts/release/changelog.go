// The changelog: sections as in Keep a Changelog, the newest first.

package main

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"golang.org/x/mod/semver"
)

// A section begins "## [1.2.3] - 2026-01-31", and without a date until it is released.
var section = regexp.MustCompile(`^## \[(\d+\.\d+\.\d+[-\w.]*)\](?: - (\d{4}-\d\d-\d\d))?$`)

// datedChangelog returns the text with a date in the section of the version, which
// must be the first, have all new entries, one at least, and be newer than the next.
func datedChangelog(text, version string, day time.Time) (string, error) {
	lines := strings.Split(text, "\n")
	last, entries, unreleased := "", 0, 0 // of the sections so far; of the version, and before it
	for i, line := range lines {
		if !strings.HasPrefix(line, "## ") {
			switch entry := strings.HasPrefix(line, "- "); {
			case entry && last == version:
				entries++
			case entry && last == "":
				unreleased++
			}
			continue
		}
		if line == "## [Unreleased]" && last == "" {
			continue
		}
		m := section.FindStringSubmatch(line)
		if m == nil {
			return "", fmt.Errorf("CHANGELOG.md:%d: %q is no heading of a version: ## [1.2.3] - 2026-01-31 is one", i+1, line)
		}
		v := "v" + m[1]
		switch {
		case last == "" && v != version:
			return "", fmt.Errorf("CHANGELOG.md:%d: the first section is that of %s, not of %s", i+1, v, version)
		case last != "" && semver.Compare(v, last) >= 0:
			return "", fmt.Errorf("CHANGELOG.md:%d: %s is after %s, which is no newer version", i+1, v, last)
		case m[2] == "" && v != version:
			return "", fmt.Errorf("CHANGELOG.md:%d: %s has no date", i+1, v)
		case m[2] == "":
			lines[i] += day.Format(" - " + time.DateOnly)
		default:
			if _, err := time.Parse(time.DateOnly, m[2]); err != nil {
				return "", fmt.Errorf("CHANGELOG.md:%d: %w", i+1, err)
			}
		}
		last = v
	}
	if last == "" {
		return "", fmt.Errorf("CHANGELOG.md has no section %q", "## ["+version[1:]+"]")
	}
	if unreleased > 0 {
		return "", fmt.Errorf("CHANGELOG.md: what is above the section of %s would be released too: move it there", version)
	}
	if entries == 0 {
		return "", fmt.Errorf("CHANGELOG.md: the section of %s has no entry", version)
	}
	return strings.Join(lines, "\n"), nil
}
