// Linux supports every advice by madvise, the guards since 6.13.

package vm

import "golang.org/x/sys/unix"

var advices = [numAdvices]int{
	Normal:     unix.MADV_NORMAL,
	Sequential: unix.MADV_SEQUENTIAL,
	Random:     unix.MADV_RANDOM,
	WillNeed:   unix.MADV_WILLNEED,
	DontNeed:   unix.MADV_DONTNEED,
	Populate:   unix.MADV_POPULATE_WRITE,
	HugePages:  unix.MADV_HUGEPAGE,
	Guard:      unix.MADV_GUARD_INSTALL,
	Unguard:    unix.MADV_GUARD_REMOVE,
}
