// Seam: each system call is made to fail. The error must be right, the state unchanged, and a
// second try must succeed.

package vm

import (
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
)

var errInjected = errors.New("injected")

// A subject is the memory and the file on which calls operate. The memory is committed and
// filled; the file is 2 pages long.
type subject struct {
	addr, size uintptr
	spare      uintptr // of the same size, committed
	file       *os.File
	mapped     uintptr // the file, 0 if this system has no mapped files
}

var calls = []struct {
	name string
	ops  []Op
	do   func(s *subject) error
}{
	{"Reserve", []Op{OpReserve}, func(s *subject) error { _, err := Reserve(s.size, PageBytes()); return err }},
	{"Commit", []Op{OpCommit}, func(s *subject) error { return Commit(s.addr, s.size) }},
	{"Decommit", []Op{OpDecommit}, func(s *subject) error { return Decommit(s.addr, s.size) }},
	{"Revoke", []Op{OpRevoke}, func(s *subject) error { return Revoke(s.addr, s.size) }},
	{"RevokeWrites", []Op{OpRevoke}, func(s *subject) error { return RevokeWrites(s.addr, s.size) }},
	{"Renew", []Op{OpRenew, OpCommit}, func(s *subject) error { return Renew(s.addr, s.size) }},
	{"Move", []Op{OpMove}, func(s *subject) error { return Move(s.spare, s.addr, s.size) }},
	{"Resident", []Op{OpResident}, func(s *subject) error { return Resident(s.addr, s.size, make([]byte, s.size/PageBytes())) }},
	{"Advise", []Op{OpAdvise}, func(s *subject) error { return Advise(s.addr, s.size, WillNeed) }},
	{"ExtendFile", []Op{OpExtendFile}, func(s *subject) error { return ExtendFile(s.file, 0, int64(s.size)) }},
	{"AllocateFile", []Op{OpExtendFile}, func(s *subject) error { return AllocateFile(s.file, 0, int64(s.size)) }},
	{"MapFile", []Op{OpMapFile}, func(s *subject) error {
		addr, err := MapFile(s.file, s.size, true)
		if err == nil {
			err = unmapFile(addr, RoundUp(s.size, PageBytes()))
		}
		return err
	}},
	{"Fence", []Op{OpFence, OpFence}, func(*subject) error {
		if err := PrepareFence(); err != nil && !errors.Is(err, ErrUnsupported) {
			return err
		}
		return Fence()
	}},
	{"Sync", []Op{OpSync}, func(s *subject) error { return Sync(s.mapped, s.size) }},
	{"SyncFile", []Op{OpSyncFile}, func(s *subject) error { return SyncFile(s.file) }},
	{"UnmapFile", []Op{OpUnmapFile}, func(s *subject) error { return UnmapFile(s.mapped, s.size) }},
}

func newSubject(t *testing.T) *subject {
	s := &subject{}
	s.addr, s.size = committed(t, 2)
	s.spare, _ = committed(t, 2)
	fill(s.addr, s.size)
	s.file = newFile(t, s.size)
	var err error
	if s.mapped, err = MapFile(s.file, s.size, true); err != nil && !errors.Is(err, ErrUnsupported) {
		t.Fatal(err)
	}
	return s
}

func TestFaults(t *testing.T) {
	for _, tt := range calls {
		for n, op := range tt.ops {
			t.Run(tt.name+"/"+op.String(), func(t *testing.T) {
				s := newSubject(t)
				if s.mapped == 0 && (op == OpSync || op == OpUnmapFile) {
					t.Skip("this system has no mapped files")
				}
				defer func() {
					if s.mapped != 0 && op != OpUnmapFile {
						must(t, UnmapFile(s.mapped, s.size))
					}
				}()
				for _, once := range []bool{true, false} {
					restore := SetFault(FailNth(n+1, once, errInjected))
					err := tt.do(s)
					restore()
					var e *Error
					if !errors.As(err, &e) || e.Op != op || !errors.Is(err, errInjected) {
						t.Fatalf("once=%v: error is %#v, want the injected one of %v", once, err, op)
					}
					if errors.Is(err, ErrNoMemory) || errors.Is(err, ErrUnsupported) {
						t.Errorf("once=%v: %v is of no class", once, err)
					}
					if n == 0 {
						wantFilled(t, s.addr, s.size, 0, "after the fault")
						wantZero(t, s.spare, s.size, "after the fault, spare")
					}
				}
				if err := tt.do(s); err != nil && !errors.Is(err, ErrUnsupported) && !errors.Is(err, ErrNoMemory) {
					t.Errorf("without the fault: %v", err)
				}
				must(t, Commit(s.addr, s.size))
				fill(s.addr, s.size)
			})
		}
	}
}

// TestFaultsReachEveryOp: no system call bypasses the seam.
func TestFaultsReachEveryOp(t *testing.T) {
	seen := map[Op]bool{}
	for _, tt := range calls {
		s := newSubject(t)
		var got []Op
		restore := SetFault(func(op Op) error { got = append(got, op); return nil })
		if s.mapped != 0 || (tt.name != "Sync" && tt.name != "UnmapFile") {
			_ = tt.do(s)
		} else {
			got = tt.ops
		}
		restore()
		if !slices.Equal(got, tt.ops) {
			t.Errorf("%s enters by %v, want %v", tt.name, got, tt.ops)
		}
		for _, op := range got {
			seen[op] = true
		}
		if s.mapped != 0 && tt.name != "UnmapFile" {
			must(t, UnmapFile(s.mapped, s.size))
		}
	}
	addr, size := committed(t, 1)
	restore := SetFault(func(op Op) error { seen[op] = true; return errInjected })
	Name(addr, size, "test") // it returns no error
	restore()
	secret, err := ReserveSecret(size)
	must(t, err)
	restore = SetFault(func(op Op) error {
		seen[op] = true
		if op == OpHide {
			return errInjected
		}
		return nil
	})
	_, err = CommitSecret(secret, size, 0)
	must(t, errors.Join(err, ProtectSecret(secret, size, NoAccess), RevokeSecret(secret, size)))
	_, _ = AllowedNodes() // not in race builds
	restore()
	seen[OpPlace] = seen[OpPlace] || GoBacked
	for op := range Op(NumOps) {
		if !seen[op] {
			t.Errorf("nothing enters by %v", op)
		}
		if op.String() == "" || strings.ToLower(op.String()) != op.String() {
			t.Errorf("op %d is called %q", op, op.String())
		}
	}
}

func TestErrorClasses(t *testing.T) {
	addr, size := committed(t, 1)
	for _, tt := range []struct {
		err                   error
		noMemory, unsupported bool
	}{
		{ErrNoMemory, true, false},
		{ErrUnsupported, false, true},
		{errors.ErrUnsupported, false, true},
		{errInjected, false, false},
	} {
		restore := SetFault(FailNth(1, true, tt.err))
		err := Commit(addr, size)
		restore()
		if errors.Is(err, ErrNoMemory) != tt.noMemory || errors.Is(err, ErrUnsupported) != tt.unsupported {
			t.Errorf("%v: no memory is %v, unsupported is %v", err, errors.Is(err, ErrNoMemory), errors.Is(err, ErrUnsupported))
		}
		if want := "freehold: vm: commit of "; !strings.HasPrefix(err.Error(), want) {
			t.Errorf("the error is %q, want %q...", err, want)
		}
	}
}

func TestInterrupts(t *testing.T) {
	addr, size := committed(t, 1)
	left := 3
	restore := SetFault(func(Op) error {
		if left == 0 {
			return nil
		}
		left--
		return syscall.EINTR
	})
	err := Commit(addr, size)
	restore()
	if err != nil || left != 0 {
		t.Errorf("after 3 interrupts: %v", err)
	}

	restore = SetFault(FailNth(1, false, syscall.EINTR))
	err = Commit(addr, size)
	restore()
	if !errors.Is(err, syscall.EINTR) {
		t.Errorf("interrupted for ever: %v, want EINTR", err)
	}
}

func TestSetFaultRestores(t *testing.T) {
	addr, size := committed(t, 1)
	outer := SetFault(func(Op) error { return errInjected })
	inner := SetFault(func(Op) error { return nil })
	if err := Commit(addr, size); err != nil {
		t.Errorf("inner: %v", err)
	}
	inner()
	if err := Commit(addr, size); !errors.Is(err, errInjected) {
		t.Errorf("outer: %v, want the injected error", err)
	}
	outer()
	if err := Commit(addr, size); err != nil {
		t.Errorf("restored: %v", err)
	}
}

func TestFailNth(t *testing.T) {
	for _, tt := range []struct {
		n    int
		once bool
		want string // x is a failure
	}{
		{1, true, "x...."},
		{3, true, "..x.."},
		{1, false, "xxxxx"},
		{4, false, "...xx"},
		{9, false, "....."},
	} {
		f := FailNth(tt.n, tt.once, errInjected)
		got := ""
		for range tt.want {
			if f(OpCommit) != nil {
				got += "x"
			} else {
				got += "."
			}
		}
		if got != tt.want {
			t.Errorf("FailNth(%d, %v): %s, want %s", tt.n, tt.once, got, tt.want)
		}
	}
}
