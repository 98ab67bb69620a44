package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"
)

func sortedBy(t *testing.T, n, memory int64, run func(s *recordSort, ctx context.Context) error) recordFigures {
	t.Helper()
	last := 0.0
	s := &recordSort{n: n, memory: memory, report: func(f float64) {
		if f < 0 || f > 1 {
			t.Errorf("progress %v", f)
		}
		last = max(last, f)
	}}
	if err := run(s, t.Context()); err != nil {
		t.Fatal(err)
	}
	if last < isSorted {
		t.Errorf("progress ended at %v", last)
	}
	return s.f
}

func TestRecordsAreSorted(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	for _, n := range []int64{1, 2, 1000, step, 3*step + 1} {
		onGo := sortedBy(t, n, 0, (*recordSort).onGoHeap)
		off := sortedBy(t, n, 0, (*recordSort).inBuffer)
		if off.OffLive < n*recordBytes {
			t.Errorf("%d records take %d bytes off the Go heap", n, off.OffLive)
		}
		if onGo.Disk != 0 || off.Disk != 0 {
			t.Errorf("%d records in memory took %d and %d bytes of disk", n, onGo.Disk, off.Disk)
		}
	}
	const many = 1_000_000 // 24 MB in 16 MiB
	if !spills(many, leastDefault) {
		t.Fatal("the records fit")
	}
	f := sortedBy(t, many, leastDefault, (*recordSort).inFiles)
	if f.Disk != many*recordBytes || f.Create <= 0 || f.Sort <= 0 {
		t.Errorf("sorted in files: %+v", f)
	}
	sortedBy(t, 1, leastDefault, (*recordSort).inFiles)
}

func TestRecordReaderAndCheck(t *testing.T) {
	const n = 1000
	for _, size := range []int{1, 7, recordBytes, recordBytes + 1, 1000} {
		in := &recordReader{n: n, report: func(_, _ uint64) {}}
		var all bytes.Buffer
		if _, err := io.CopyBuffer(&all, struct{ io.Reader }{in}, make([]byte, size)); err != nil || all.Len() != n*recordBytes {
			t.Fatalf("in parts of %d: %d bytes, %v", size, all.Len(), err)
		}
		record := all.Bytes()[:recordBytes]
		var c recordCheck
		for len(record) > 0 {
			part := record[:min(size, len(record))]
			if _, err := c.Write(part); err != nil {
				t.Fatal(err)
			}
			record = record[len(part):]
		}
		if err := c.end(1); err != nil {
			t.Errorf("in parts of %d: %v", size, err)
		}
	}
}

func TestRecordCheckFindsMistakes(t *testing.T) {
	low, high := make([]byte, recordBytes), make([]byte, recordBytes)
	putRecord(low, 0)
	putRecord(high, 1)
	if keyOfRecord(low) > keyOfRecord(high) {
		low, high = high, low
	}
	damaged := bytes.Clone(low)
	damaged[20]++
	tests := []struct {
		name    string
		records [][]byte
		want    string
	}{
		{"none", nil, ""},
		{"in order", [][]byte{low, high}, ""},
		{"not in order", [][]byte{high, low}, "not in order"},
		{"twice", [][]byte{low, low}, "not in order"},
		{"damaged", [][]byte{damaged}, "damaged"},
		{"in part", [][]byte{low, high[:5]}, "there were 1 whole record, want 1"},
	}
	for _, tt := range tests {
		var c recordCheck
		_, err := c.Write(bytes.Join(tt.records, nil))
		if err == nil {
			err = c.end(uint64(len(tt.records)) - uint64(min(len(c.rest), 1)))
		}
		if tt.want == "" && err == nil {
			continue
		}
		if !errors.Is(err, errRecord) || !strings.Contains(err.Error(), tt.want) || tt.want == "" {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	var missing recordCheck
	missing.Write(low)
	if err := missing.end(2); !errors.Is(err, errRecord) {
		t.Errorf("a missing record gave %v", err)
	}
}

func TestCount(t *testing.T) {
	for text, want := range map[string]count{"1": 1, "1e9": 1e9, "10_000_000": 1e7, "2.5e3": 2500} {
		var c count
		if err := c.UnmarshalText([]byte(text)); err != nil || c != want {
			t.Errorf("%s is %d, %v", text, c, err)
		}
	}
	for _, text := range []string{"", "0", "-1", "1.5", "1e13", "many", "NaN", "Inf"} {
		if err := new(count).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}

func TestDemoSortInFiles(t *testing.T) {
	code, out, errs := command(t.Context(), append([]string{"demo", "sort", "--backend", "freehold", "--memory", "16MiB"},
		append(tinyDemo, "--records", "1e6")...)...)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	for _, want := range []string{"1,000,000 records of 24 bytes", "in temporary files", "22.9 MiB"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in:\n%s", want, out)
		}
	}
}

// A short run is told in milliseconds, and one record is no records.
func TestDemoSortsOneRecord(t *testing.T) {
	code, out, errs := command(t.Context(), "demo", "sort", "--records", "1", "--backend", "freehold")
	result := regexp.MustCompile(`- 1 record of 24 bytes created, sorted and verified in [0-9.]+ ms in a buffer`)
	if code != 0 || !result.MatchString(out) || strings.Contains(out, "1 records") {
		t.Errorf("exit code %d, %s, %s", code, out, errs)
	}
}

func TestDuration(t *testing.T) {
	for ms, want := range map[float64]string{0: "0 ms", 0.004: "0.004 ms", 42: "42.0 ms", 999: "999 ms", 1000: "1.0 s", 90_000: "90.0 s"} {
		if got := duration(ms); got != want {
			t.Errorf("%v is %q, want %q", ms, got, want)
		}
	}
}

func TestDemoSortRefuses(t *testing.T) {
	for _, tt := range []struct {
		flags []string
		want  string
	}{
		{[]string{"--records", "0"}, "no number"},
		{[]string{"--memory", "1MiB"}, "at least 16"},
		{[]string{"--records", "1e12"}, "set TMPDIR to another folder"},
	} {
		code, _, errs := command(t.Context(), append([]string{"demo", "sort"}, tt.flags...)...)
		if code != exitUsage || !strings.Contains(errs, tt.want) {
			t.Errorf("%v: exit code %d, %s", tt.flags, code, errs)
		}
	}
	// Only the story that needs the space asks for it.
	if err := checkSort(settings{Records: 10, Memory: leastDefault}); err != nil {
		t.Error(err)
	}
	// What does not fit as Go values is a note.
	_, err := sortStory{}.measure(t.Context(), settings{Records: maxRecords, Memory: leastDefault}, "go", func(float64) {})
	if !errors.As(err, new(unavailableError)) {
		t.Errorf("1e12 Go values gave %v", err)
	}
}

func TestRecordSortStops(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, run := range []func(s *recordSort, ctx context.Context) error{(*recordSort).onGoHeap, (*recordSort).inBuffer, (*recordSort).inFiles} {
		s := &recordSort{n: 1_000_000, memory: leastDefault, report: func(float64) {}}
		if err := run(s, ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("a cancelled sort gave %v", err)
		}
	}
}
