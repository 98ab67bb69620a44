package process

import "testing"

func TestPeak(t *testing.T) {
	var p peak
	for _, tt := range []struct {
		status string
		want   int64 // so far
	}{
		{"", 0},
		{"VmHWM:\t 900 kB\nRssAnon:\t 500 kB\nRssFile:\t 300 kB\nRssShmem:\t 10 kB\n", 600 << 10},
		{"VmHWM:\t 900 kB\nRssAnon:\t 590 kB\nRssFile:\t 300 kB\nRssShmem:\t 20 kB\n", 610 << 10},
		{"VmHWM:\t 905 kB\nRssAnon:\t 500 kB\nRssFile:\t 100 kB\n", 610 << 10}, // pages of files went
		{"VmHWM:\t 920 kB\nRssAnon:\t 500 kB\nRssFile:\t 100 kB\n", 620 << 10},
	} {
		if p.look(tt.status); p.bytes() != tt.want {
			t.Errorf("%q: %d, want %d", tt.status, p.bytes(), tt.want)
		}
	}
}
