// Back: memory that a virtual machine has from its host.
//
// Linux reports free huge pages to the host, which then takes their memory (free page reporting of
// the balloon driver). The next touch of such a page waits until the host has found memory again:
// seen were 3.5 to 5 ms for 2 MiB, and 0.2 ms for a page that the host had not taken. Small pages
// mostly come from other free lists. So without Back, the first touch of huge pages measures the
// host.

package process

import "golang.org/x/sys/unix"

// Back makes the host give the memory of n bytes of huge pages to the system. It maps, touches and
// unmaps them, so the next huge pages of any process are these. Linux reports them again after two
// seconds.
func Back(n int) error {
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_NORESERVE)
	if err != nil {
		return err
	}
	unix.Madvise(b, unix.MADV_HUGEPAGE) // else small pages
	for i := 0; i < n; i += unix.Getpagesize() {
		b[i] = 1
	}
	return unix.Munmap(b)
}
