// Buffers in files with names.

package buffer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/buffer"
	"github.com/freehold-go/freehold/internal/test/filetest"
)

const headerBytes = 4096

// saved returns the path of a closed buffer with the given data.
func saved(t testing.TB, data []byte) string {
	t.Helper()
	mapsFiles(t)
	path := filepath.Join(filetest.TempDir(t), "data")
	b := must1(buffer.Open(path, nil))
	must1(b.Write(data))
	must(t, b.Close())
	return path
}

func TestFileKeepsTheData(t *testing.T) {
	data := pattern(100_000)
	path := saved(t, data)
	if info, err := os.Stat(path); err != nil || info.Size() != headerBytes+int64(len(data)) {
		t.Errorf("the file has %d bytes, %v", info.Size(), err)
	}
	b := must1(buffer.Open(path, nil))
	wantData(t, b, data)
	b.Truncate(50_000)
	must1(b.Write([]byte("and more")))
	must(t, b.Close())
	b = must1(buffer.Open(path, nil))
	wantData(t, b, append(data[:50_000:50_000], "and more"...))
	b.Clear()
	b.Trim()
	must(t, b.Close())
	b = must1(buffer.Open(path, nil))
	wantData(t, b, nil)
	must(t, b.Close())
}

// copyOf returns a copy of an open buffer's file, which is what a kill leaves.
func copyOf(t testing.TB, path string) string {
	t.Helper()
	content := must1(os.ReadFile(path))
	to := filepath.Join(filetest.TempDir(t), "copy")
	must(t, os.WriteFile(to, content, 0o666))
	return to
}

func wantFile(t testing.TB, path string, want []byte) {
	t.Helper()
	b := must1(buffer.Open(copyOf(t, path), nil))
	wantData(t, b, want)
	must(t, b.Close())
}

func TestFileOpensToWhatWasCommitted(t *testing.T) {
	path := saved(t, nil)
	b := must1(buffer.Open(path, nil))
	defer b.Close()
	data := pattern(30_000)
	var committed int
	for at := 0; at < len(data); at += 1000 {
		must1(b.Write(data[at : at+1000]))
		switch at / 1000 % 5 {
		case 1:
			must(t, b.Commit())
			committed = b.Len()
		case 3:
			must(t, b.Sync())
			committed = b.Len()
		}
		wantFile(t, path, data[:committed])
	}
	b.Truncate(committed)
	wantFile(t, path, data[:committed])
	b.Truncate(500)
	wantFile(t, path, data[:500])
	b.WriteString("uncommitted")
	wantFile(t, path, data[:500])
}

func TestFileIsOpenOnce(t *testing.T) {
	path := saved(t, []byte("data"))
	b := must1(buffer.Open(path, nil))
	defer b.Close()
	if _, err := buffer.Open(path, nil); err == nil || !strings.Contains(err.Error(), "open in another buffer") {
		t.Errorf("opened twice: %v", err)
	}
}

// Any number of buffers may read a file that none writes.
func TestReadOnly(t *testing.T) {
	data := pattern(10_000)
	path := saved(t, data)
	before := must1(os.ReadFile(path))
	must(t, os.Chmod(path, 0o444))
	defer os.Chmod(path, 0o666)
	readOnly := &buffer.OpenOptions{ReadOnly: true}
	first := must1(buffer.Open(path, readOnly))
	b := must1(buffer.Open(path, readOnly))
	must(t, first.Close())
	wantData(t, b, data)
	r := must1(buffer.NewRecords(b, &buffer.RecordsOptions{RecordBytes: 8}))
	_, write := b.Write(data)
	_, extend := b.Extend(1)
	_, readFrom := b.ReadFrom(strings.NewReader("text"))
	for i, err := range []error{write, extend, readFrom, b.Grow(1), b.WriteByte(1), r.AppendBytes(data[:8]), r.Truncate(0), r.SortBy(context.Background(), nil, nil)} {
		if !errors.Is(err, fs.ErrPermission) {
			t.Errorf("call %d of those that would write: %v", i, err)
		}
	}
	for name, call := range map[string]func(){
		"Buffer.Truncate": func() { b.Truncate(10) },
		"Buffer.Clear":    func() { b.Clear() },
	} {
		func() {
			defer func() {
				if p, want := recover(), "freehold: buffer."+name+": the buffer is read-only"; p != want {
					t.Errorf("panic %v, want %v", p, want)
				}
			}()
			call()
		}()
	}
	wantText := fmt.Sprintf("freehold: buffer: %s: a write to byte %d of the file, which is mapped read-only: ", path, headerBytes+5)
	if err := b.Guard(func() { b.Bytes()[5] = 1 }); !errors.Is(err, fs.ErrPermission) || !strings.HasPrefix(err.Error(), wantText) {
		t.Errorf("a write to a byte: %v", err)
	}
	b.Trim()
	must(t, b.Commit())
	must(t, b.Sync())
	wantData(t, b, data)
	must(t, b.Close())
	if !bytes.Equal(must1(os.ReadFile(path)), before) {
		t.Error("the file was changed")
	}
}

// What a killed process appended is neither read nor removed.
func TestReadOnlyHasWhatWasCommitted(t *testing.T) {
	path := saved(t, []byte("data"))
	b := must1(buffer.Open(path, nil))
	defer b.Close()
	readOnly := &buffer.OpenOptions{ReadOnly: true}
	if _, err := buffer.Open(path, readOnly); err == nil || !strings.Contains(err.Error(), "open in another buffer") {
		t.Errorf("beside a buffer that writes: %v", err)
	}
	b.WriteString(" and more")
	path = copyOf(t, path)
	before := must1(os.Stat(path)).Size()
	b = must1(buffer.Open(path, readOnly))
	wantData(t, b, []byte("data"))
	must(t, b.Close())
	if size := must1(os.Stat(path)).Size(); size != before {
		t.Errorf("%d bytes in the file, were %d", size, before)
	}
	none := filepath.Join(filepath.Dir(path), "none")
	if _, err := buffer.Open(none, readOnly); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that does not exist: %v", err)
	}
	must(t, os.WriteFile(none, nil, 0o666))
	if _, err := buffer.Open(none, readOnly); !errors.Is(err, buffer.ErrForeign) {
		t.Errorf("an empty file: %v", err)
	}
}

func TestMaxBytesOfAFile(t *testing.T) {
	path := saved(t, pattern(1000))
	if _, err := buffer.Open(path, &buffer.OpenOptions{MaxBytes: 999}); err == nil || !strings.Contains(err.Error(), "more than MaxBytes") {
		t.Errorf("with 1000 bytes: %v", err)
	}
	b := must1(buffer.Open(path, &buffer.OpenOptions{MaxBytes: 1000}))
	defer b.Close()
	if err := b.WriteByte(1); !errors.Is(err, freehold.ErrOutOfMemory) {
		t.Errorf("a byte beyond MaxBytes: %v", err)
	}
}

// A file keeps its capacity when the process is killed, and MaxBytes may be less.
func TestMaxBytesOfAFileWithMoreCapacity(t *testing.T) {
	path := saved(t, nil)
	b := must1(buffer.Open(path, nil))
	defer b.Close()
	data := pattern(100)
	b.Write(data)
	must(t, b.Commit())
	must(t, b.Grow(10_000))

	path, limit := copyOf(t, path), &buffer.OpenOptions{MaxBytes: 200}
	for range 2 {
		b := must1(buffer.Open(path, limit))
		if n, err := b.Write(make([]byte, 101)); n != 0 || !errors.Is(err, freehold.ErrOutOfMemory) || b.Cap() > 200 {
			t.Errorf("%d bytes beyond MaxBytes, %v, capacity %d", n, err, b.Cap())
		}
		wantData(t, b, data)
		must(t, b.Close())
	}
	b = must1(buffer.Open(copyOf(t, path), &buffer.OpenOptions{MaxBytes: 100}))
	b.Trim()
	if b.Cap() != 100 {
		t.Errorf("capacity %d after Trim", b.Cap())
	}
	must(t, b.Close())
}

func TestFilesThatAreNoBuffers(t *testing.T) {
	mapsFiles(t)
	dir := filetest.TempDir(t)
	whole := must1(os.ReadFile(saved(t, pattern(1000))))
	version := append([]byte(nil), whole...)
	version[8] = 2
	none := append([]byte(nil), whole...)
	none[8] = 0
	for _, tt := range []struct {
		name    string
		content []byte
		want    error
	}{
		{"text", []byte("hello, world\n"), buffer.ErrForeign},
		{"long text", []byte(strings.Repeat("hello, world\n", 1000)), buffer.ErrForeign},
		{"zeros", make([]byte, 8192), buffer.ErrForeign},
		{"another version", version, buffer.ErrForeign},
		{"no version", none, buffer.ErrForeign},
		{"half a header", whole[:2000], buffer.ErrTruncated},
		{"a header without the data", whole[:headerBytes], buffer.ErrTruncated},
		{"a byte too few", whole[:len(whole)-1], buffer.ErrTruncated},
	} {
		path := filepath.Join(dir, "file")
		must(t, os.WriteFile(path, tt.content, 0o666))
		b, err := buffer.Open(path, nil)
		if b != nil || !errors.Is(err, tt.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", tt.name, err)
		}
		if content, err := os.ReadFile(path); err != nil || string(content) != string(tt.content) {
			t.Errorf("%s: the file was changed, %v", tt.name, err)
		}
	}
	if _, err := buffer.Open(dir, nil); err == nil {
		t.Error("a directory was opened")
	}
	if _, err := buffer.Open(filepath.Join(dir, "none", "file"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("in a directory that does not exist: %v", err)
	}
}

// A file of no bytes is what Open leaves when it creates one and cannot go on.
func TestFileThatWasCutToNothing(t *testing.T) {
	path := saved(t, pattern(1000))
	must(t, os.Truncate(path, 0))
	if _, err := buffer.Open(path, &buffer.OpenOptions{ReadOnly: true}); !errors.Is(err, buffer.ErrForeign) {
		t.Errorf("to read: %v", err)
	}
	b := must1(buffer.Open(path, nil))
	wantData(t, b, nil)
	must(t, b.Close())
	wantFile(t, path, nil)
}

// Whatever bit of the header is wrong, the data is read whole or not at all.
func TestEveryBitOfTheHeader(t *testing.T) {
	data := pattern(1000)
	path := saved(t, data)
	whole := must1(os.ReadFile(path))
	refused := 0
	for bit := range headerBytes * 8 {
		if bit >= 64*8 && bit%101 != 0 {
			continue // beyond the fields
		}
		damaged := append([]byte(nil), whole...)
		damaged[bit/8] ^= 1 << (bit % 8)
		must(t, os.WriteFile(path, damaged, 0o666))
		b, err := buffer.Open(path, &buffer.OpenOptions{ReadOnly: true}) // which need not write it
		if err != nil {
			refused++
			if !errors.Is(err, buffer.ErrForeign) && !errors.Is(err, buffer.ErrCorrupt) {
				t.Errorf("bit %d: %v", bit, err)
			}
			continue
		}
		wantData(t, b, data)
		must(t, b.Close())
	}
	if want := (24 + 16) * 8; refused != want {
		t.Errorf("%d bits are refused, want those of 24 bytes and of a slot: %d", refused, want)
	}
}
