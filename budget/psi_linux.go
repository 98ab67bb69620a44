// PSI triggers: the kernel tells when tasks have waited for memory.

package budget

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// watchStalls calls f whenever the stalls of a file of PSI pass the trigger, at most once
// a window, until stop. Then stop waits for f to return. It fails where the kernel or the
// rights have no triggers.
func watchStalls(file string, f func()) (stop func(), err error) {
	trigger, err := unix.Open(file, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	// The kernel wants the zero at the end.
	condition := fmt.Appendf(nil, "some %d %d\x00", stallTime.Microseconds(), stallWindow.Microseconds())
	if _, err = unix.Write(trigger, condition); err != nil {
		unix.Close(trigger)
		return nil, err
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		unix.Close(trigger)
		return nil, err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		// Go's poller does not ask for priority events.
		fds := []unix.PollFd{{Fd: int32(trigger), Events: unix.POLLPRI}, {Fd: int32(wake), Events: unix.POLLIN}}
		for {
			_, err := unix.Poll(fds, -1)
			switch {
			case err == unix.EINTR:
				continue
			case err != nil || fds[1].Revents != 0 || fds[0].Revents&^unix.POLLPRI != 0: // the cgroup is gone
				return
			}
			f()
		}
	}()
	return func() {
		unix.Write(wake, []byte{1, 1, 1, 1, 1, 1, 1, 1}) // any number but 0
		<-done
		unix.Close(wake)
		unix.Close(trigger)
	}, nil
}
