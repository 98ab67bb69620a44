// A box in a virtual machine: for systems where no control group can be made.
//
// qemu starts a Linux kernel with this program as its first process, and nothing else:
//
//	initramfs   /init            this program, which must be static
//	            /box.json        the run
//	            /dev/console     so that a crash is seen
//	ttyS0       the kernel's messages, for when it fails
//	ttyS1       what a child prints: see child.go
//
// It emulates the processor, so times are several times those of the machine.

package main

import (
	"bufio"
	"bytes"
	"context"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
)

const (
	vmQEMU      = "qemu-system-x86_64"
	vmKernels   = "/boot/vmlinuz-*"
	vmBoxFile   = "box.json"
	vmRestBytes = 512 << 20 // beside the limit: the kernel, and this program twice
)

// vmJob is what the machine is to do.
type vmJob struct {
	Run      string      `json:"run"`
	Settings boxSettings `json:"settings"`
}

// vmReady returns the program and the kernel to run a machine with, or what is missing.
func (s boxSettings) vmReady() (qemu, kernel string, err error) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return "", "", unavailablef("a virtual machine needs this program for linux/amd64")
	}
	if qemu, err = exec.LookPath(s.QEMU); err != nil {
		return "", "", unavailablef("no virtual machine: %w; install qemu-system-x86 or name it with --qemu", err)
	}
	kernel = s.Kernel
	if kernel == "" {
		found, _ := filepath.Glob(vmKernels)
		if len(found) == 0 {
			return "", "", unavailablef("no virtual machine: there is no kernel %s; name one with --kernel, such as that of Debian's package linux-image-cloud-amd64", vmKernels)
		}
		kernel = found[len(found)-1]
	}
	if _, err := os.Stat(kernel); err != nil {
		return "", "", unavailablef("no virtual machine: the kernel: %w", err)
	}
	exe, err := os.Executable()
	if err != nil {
		return "", "", err
	}
	return qemu, kernel, checkStatic(exe)
}

// checkStatic fails for a program that needs libraries: the machine has none.
func checkStatic(exe string) error {
	f, err := elf.Open(exe)
	if err != nil {
		return err
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return unavailablef("no virtual machine: this program needs the C library; build it with CGO_ENABLED=0")
		}
	}
	return nil
}

// measureInVM does what measure does, in a virtual machine with a control group.
func (s boxSettings) measureInVM(ctx context.Context, r boxRun, report func(float64)) (*boxOutcome, error) {
	qemu, kernel, err := s.vmReady()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "freehold-box-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	inside := s
	inside.Kind = boxGroup
	initramfs, log := filepath.Join(dir, "initramfs"), filepath.Join(dir, "console")
	if err := writeInitramfs(initramfs, vmJob{r.name(), inside}); err != nil {
		return nil, fmt.Errorf("making the virtual machine's files: %w", err)
	}
	limited, stop := context.WithTimeout(ctx, 2*s.Deadline)
	defer stop()
	cmd := exec.CommandContext(limited, qemu,
		"-accel", "tcg,thread=multi", "-cpu", "max", "-smp", strconv.Itoa(min(runtime.NumCPU(), 4)),
		"-m", fmt.Sprintf("%dM", (r.Limit+vmRestBytes)>>20),
		"-nodefaults", "-no-reboot", "-display", "none", "-serial", "file:"+log, "-serial", "stdio",
		"-kernel", kernel, "-initrd", initramfs, "-append", "console=ttyS0 quiet panic=-1 -- boxvm")
	runtime.LockOSThread() // with whose end qemu would end
	defer runtime.UnlockOSThread()
	endWithParent(cmd)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", qemu, err)
	}
	o, err := decodeOutcome(pipe, report)
	if err != nil { // it may hang
		stop()
	}
	waited := cmd.Wait()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case o != nil:
		return o, nil
	}
	console, _ := os.ReadFile(log)
	return nil, fmt.Errorf("the virtual machine: %w: %s", errors.Join(err, waited), lastLines(complaint.String()+string(console)))
}

// decodeOutcome reads what a child prints until its result.
func decodeOutcome(r io.Reader, report func(float64)) (*boxOutcome, error) {
	for in := json.NewDecoder(bufio.NewReader(r)); ; {
		var m message
		if err := in.Decode(&m); err != nil {
			return nil, err
		}
		switch {
		case m.Result != nil:
			o := &boxOutcome{}
			return o, json.Unmarshal(m.Result, o)
		case m.Unavailable != "":
			return nil, unavailablef("%s", m.Unavailable)
		default:
			report(m.Progress)
		}
	}
}

// writeInitramfs writes the machine's file system.
func writeInitramfs(file string, job vmJob) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	program, err := os.ReadFile(exe)
	if err != nil {
		return err
	}
	text, err := json.Marshal(job)
	if err != nil {
		return err
	}
	var a cpio
	a.add("dev", cpioDir|0o755, 0, 0, nil)
	a.add("dev/console", cpioDevice|0o600, 5, 1, nil)
	a.add("init", cpioFile|0o755, 0, 0, program)
	a.add(vmBoxFile, cpioFile|0o644, 0, 0, text)
	return os.WriteFile(file, a.end(), 0o600)
}

// cpio is an archive as the kernel takes it, of the format newc: see
// Documentation/driver-api/early-userspace/buffer-format.rst.
type cpio struct {
	out   bytes.Buffer
	files int
}

const (
	cpioFile   = 0o100000
	cpioDir    = 0o040000
	cpioDevice = 0o020000 // of characters
)

func (c *cpio) add(name string, mode, major, minor int, data []byte) {
	c.files++
	fields := []int{c.files, mode, 0, 0, 1, 0, len(data), 0, 0, major, minor, len(name) + 1, 0}
	c.out.WriteString("070701")
	for _, f := range fields {
		fmt.Fprintf(&c.out, "%08X", f)
	}
	c.out.WriteString(name + "\x00")
	c.pad()
	c.out.Write(data)
	c.pad()
}

func (c *cpio) pad() {
	for c.out.Len()%4 != 0 {
		c.out.WriteByte(0)
	}
}

func (c *cpio) end() []byte {
	c.add("TRAILER!!!", 0, 0, 0, nil)
	return c.out.Bytes()
}
