package cli

import "testing"

func TestSize(t *testing.T) {
	tests := []struct {
		text string
		want int64
		ok   bool
	}{
		{"4096", 4096, true},
		{"0", 0, true},
		{"16GiB", 16 << 30, true},
		{"16gib", 16 << 30, true},
		{"16 GiB", 16 << 30, true},
		{"16G", 16 << 30, true}, // a letter alone is binary
		{"16g", 16 << 30, true},
		{"512M", 512 << 20, true},
		{"1.5GiB", 3 << 29, true},
		{"1GB", 1e9, true}, // as written
		{"100 B", 100, true},
		{"2TiB", 2 << 40, true},

		{"", 0, false},
		{"GiB", 0, false},
		{"G", 0, false},
		{"-1", 0, false},
		{"16 apples", 0, false},
		{"16XiB", 0, false},
		{"9000000TiB", 0, false}, // more than an int64 of bytes
		{"10EiB", 0, false},
	}
	for _, tt := range tests {
		var b Size
		err := b.UnmarshalText([]byte(tt.text))
		if (err == nil) != tt.ok || int64(b) != tt.want {
			t.Errorf("%q is %d, %v; want %d, ok %v", tt.text, int64(b), err, tt.want, tt.ok)
		}
	}
}

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 5: "5 B", 1 << 10: "1.00 KiB", 768 << 20: "768 MiB", 12 << 30: "12.0 GiB", -2048: "-2.00 KiB",
	} {
		if got := Bytes(n); got != want {
			t.Errorf("Bytes(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestSizesAreWrittenAsTheyAreRead(t *testing.T) {
	var got Size
	text, err := Size(1<<40 + 1).MarshalText()
	if err != nil || got.UnmarshalText(text) != nil || got != 1<<40+1 {
		t.Errorf("%q is read as %d, %v", text, got, err)
	}
}
