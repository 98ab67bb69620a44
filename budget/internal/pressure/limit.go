// Limit: how much memory the process may have.
//
//	Options.Limit > FREEHOLD_MEMORY_LIMIT > cgroups below physical memory > 3/4 of physical memory
//
// The first two are lowered to physical memory and to the cgroup's limit, since the system kills a
// process that takes more. A Watch repeats the search: a container may be resized, and a process
// may move to another cgroup. A cgroup whose file cannot be read or parsed keeps its last limit.

package pressure

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/freehold-go/freehold/internal/sysmem"
)

// Environment is the variable with the process's limit.
const Environment = "FREEHOLD_MEMORY_LIMIT"

// ErrNoLimit is matched by the error of a search that finds no limit in any source.
var ErrNoLimit = errors.New("no memory limit found: set Options.Limit or " + Environment)

// The process may have 3/4 of physical memory. The kernel and other processes have the rest.
const (
	physicalNumerator   = 3
	physicalDenominator = 4
)

// foundLimit is the process's limit and where it is from.
type foundLimit struct {
	bytes  int64
	source string
	group  *sysmem.Level  // the cgroup that sets the limit, or nil
	groups []sysmem.Limit // of all cgroups on the process's path

	ofPhysical bool // the limit is a part of physical memory
}

// Machine is the system that a Watch reads. Tests make their own.
type Machine struct {
	Files     fs.FS // the root directory
	LookupEnv func(string) (string, bool)
	Physical  func() (int64, error)
}

// findLimit returns the process's limit. Its bytes are 0 if there is none. The error describes
// mistakes in the sources, and may come with a limit. before has the cgroups' limits of the last
// search.
func (m Machine) findLimit(option int64, before []sysmem.Limit) (foundLimit, error) {
	asked := foundLimit{bytes: option, source: "Options.Limit"}
	if option == 0 {
		value, ok := m.LookupEnv(Environment)
		if !ok || value == "" {
			return m.systemLimit(before)
		}
		n, err := parseSize(value)
		if err != nil {
			return foundLimit{}, fmt.Errorf("%s: %w", Environment, err)
		}
		asked = foundLimit{bytes: n, source: Environment}
	}
	least := asked
	if physical, err := m.Physical(); err == nil && 0 < physical && physical < least.bytes {
		least = foundLimit{bytes: physical, source: "physical memory"}
	}
	group, problem := m.groupLimit(least.bytes, before)
	if group.bytes > 0 {
		least = group
	}
	least.groups = group.groups
	if least.bytes == asked.bytes {
		least.source = asked.source
	} else {
		problem = errors.Join(problem, fmt.Errorf("%s of %s is above the %s of %s",
			asked.source, FormatSize(asked.bytes), FormatSize(least.bytes), least.source))
	}
	return least, problem
}

// systemLimit returns the limit that the system sets.
func (m Machine) systemLimit(before []sysmem.Limit) (foundLimit, error) {
	physical, physicalErr := m.Physical()
	if physicalErr == nil && physical <= 0 {
		physicalErr = fmt.Errorf("%d bytes", physical)
	}
	most := physical - 1
	if physicalErr != nil {
		most = sysmem.NoLimit
	}
	group, problem := m.groupLimit(most, before)
	switch {
	case group.bytes > 0:
		return group, problem
	case physicalErr == nil:
		group.bytes, group.ofPhysical = physical/physicalDenominator*physicalNumerator, true
		group.source = fmt.Sprintf("%d/%d of physical memory", physicalNumerator, physicalDenominator)
		return group, problem
	}
	return foundLimit{}, errors.Join(ErrNoLimit, problem, fmt.Errorf("physical memory: %w", physicalErr))
}

// groupLimit returns the limit of the cgroup that has the least memory left. Limits above most
// bytes do not count. While the cgroups cannot be read, groupLimit uses before, the limits of the
// last search.
func (m Machine) groupLimit(most int64, before []sysmem.Limit) (foundLimit, error) {
	levels, err := sysmem.Levels(m.Files)
	if errors.Is(err, fs.ErrNotExist) && len(before) == 0 {
		return foundLimit{}, nil // a system without cgroups
	}
	limits, limitsErr := before, error(nil)
	if err == nil || len(levels) > 0 {
		limits, limitsErr = sysmem.Limits(m.Files, levels, before)
	}
	least := foundLimit{groups: limits}
	var leastLeft, used int64
	for i, g := range limits {
		if i == 0 || g.Dir != limits[i-1].Dir { // one use for all limits of a cgroup
			used, _ = g.Used(m.Files)
		}
		if g.Bytes > most {
			continue
		}
		if left := g.Bytes - used; least.bytes == 0 || left < leastLeft {
			least, leastLeft = foundLimit{bytes: g.Bytes, source: g.File, group: &g.Level, groups: limits}, left
		}
	}
	return least, errors.Join(err, limitsErr)
}

// residentOf returns the resident bytes that count against a limit: the cgroup's, or the process's
// if there is none. It is 0 if the system reports neither.
func (m Machine) residentOf(l foundLimit) int64 {
	if l.group != nil {
		if n, ok := l.group.Used(m.Files); ok {
			return n
		}
	}
	return residentBytes(m.Files)
}

// residentBytes returns the process's anonymous and shared resident memory, without mapped files.
// It is 0 if the system does not report it.
func residentBytes(files fs.FS) int64 {
	stat, _ := sysmem.Stat(files, "proc/self/status")
	return stat["RssAnon"] + stat["RssShmem"]
}
