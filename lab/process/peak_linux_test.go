package process

import "testing"

func TestPeak(t *testing.T) {
	var p peak
	for _, tt := range []struct {
		status map[string]int64
		want   int64 // so far
	}{
		{nil, 0},
		{map[string]int64{"VmHWM": 900, "RssAnon": 500, "RssFile": 300, "RssShmem": 10}, 600},
		{map[string]int64{"VmHWM": 900, "RssAnon": 590, "RssFile": 300, "RssShmem": 20}, 610},
		{map[string]int64{"VmHWM": 905, "RssAnon": 500, "RssFile": 100}, 610}, // pages of files went
		{map[string]int64{"VmHWM": 920, "RssAnon": 500, "RssFile": 100}, 620},
	} {
		if p.look(tt.status); p.bytes() != tt.want {
			t.Errorf("%v: %d, want %d", tt.status, p.bytes(), tt.want)
		}
	}
}

func TestPeakOfThisProcess(t *testing.T) {
	rest, err := PeakWithoutFiles()
	if err != nil {
		t.Fatal(err)
	}
	if all, err := Peak(); err != nil || rest == 0 || rest > all {
		t.Errorf("%d bytes without files, of %d: %v", rest, all, err)
	}
}
