package pressure

import (
	"math"
	"testing"
)

func TestParseSize(t *testing.T) {
	tests := []struct {
		s    string
		want int64 // 0 is an error
	}{
		{"1", 1}, {"1B", 1}, {"3KiB", 3 << 10}, {"512MiB", 512 << 20}, {"2GiB", 2 << 30}, {"1TiB", 1 << 40},
		{"9223372036854775807", math.MaxInt64}, {"8388607TiB", 8388607 << 40},
		{"8388608TiB", 0}, {"9223372036854775808", 0}, // one more than fits
		{"", 0}, {"B", 0}, {"0", 0}, {"0MiB", 0}, {"-1", 0}, {"+1", 0}, {"1.5GiB", 0}, {" 1", 0}, {"1 ", 0},
		{"1MB", 0}, {"1M", 0}, {"1mib", 0}, {"1_000", 0}, {"off", 0}, {"max", 0},
	}
	for _, tt := range tests {
		got, err := parseSize(tt.s)
		if got != tt.want || (err != nil) != (tt.want == 0) {
			t.Errorf("%q: %d, %v, want %d", tt.s, got, err, tt.want)
		}
	}
}

func TestFormatSize(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0B", 1: "1B", -1: "-1B", 1023: "1023B", 1 << 10: "1KiB", 1536: "1.5KiB", 512 << 20: "512MiB", 3 << 30: "3GiB", 1 << 50: "1024TiB",
		1<<30 + 1: "1.0GiB", 1<<30 - 52428: "1.0GiB", 1<<30 - 52429: "1023.9MiB", 52429 - 1<<30: "-1023.9MiB",
		1<<20 - 51: "1.0MiB", 1<<20 - 52: "1023.9KiB",
	} {
		if got := FormatSize(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
