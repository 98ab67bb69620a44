package bench

import (
	"testing"
	"time"
)

const cannedStat = `cpu  14446 10 5520 251813 496 7 93 25 1000 0
cpu0 6498 0 2263 127377 22 0 11 10 0 0
cpu1 7947 0 3256 124436 473 0 82 14 0 0
intr 1
`

func TestParseStat(t *testing.T) {
	all, stolen, err := parseStat(cannedStat)
	if err != nil {
		t.Fatal(err)
	}
	// user + nice + system + irq + softirq; guests are in user already.
	if want := (14446 + 10 + 5520 + 7 + 93) * tick; all != want {
		t.Errorf("busy for %v, want %v", all, want)
	}
	if want := 25 * tick; stolen != want {
		t.Errorf("stolen %v, want %v", stolen, want)
	}
	for _, text := range []string{"", "cpu 1 2 3", "cpu  a b c d e f g h i j", "intr 1 2 3 4 5 6 7 8 9 10"} {
		if _, _, err := parseStat(text); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}

func TestParseSelf(t *testing.T) {
	// The command's name is the process's own choice.
	text := "4242 (a) b (c 1 2) R 1 4242 4242 0 -1 4194560 100 200 0 0 11 22 33 44 20 0 5 0 1 1 1"
	own, err := parseSelf(text)
	if err != nil {
		t.Fatal(err)
	}
	if want := (11 + 22 + 33 + 44) * tick; own != want {
		t.Errorf("own %v, want %v", own, want)
	}
	for _, text := range []string{"", "1 (x) R 1 2 3", "1 (x) R 1 2 3 4 5 6 7 8 9 10 a b c d 1 2"} {
		if _, err := parseSelf(text); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}

func TestDisturbance(t *testing.T) {
	from := busy{all: 100 * time.Second, stolen: time.Second, own: 40 * time.Second, at: time.Now()}
	after := func(wall, all, own, stolen time.Duration) busy {
		return busy{all: from.all + all, stolen: from.stolen + stolen, own: from.own + own, at: from.at.Add(wall)}
	}
	const s, ms = time.Second, time.Millisecond
	tests := []struct {
		name  string
		to    busy
		share float64
		noisy bool
	}{
		{"all of it ours", after(s, 2*s, 2*s, 0), 0, false},
		{"a tick of rounding", after(100*ms, 110*ms, 100*ms, 0), 0.1, false},
		{"ours counted ahead of all", after(100*ms, 90*ms, 100*ms, 0), 0, false},
		{"a neighbour on the other processor", after(s, 2*s, s, 0), 1, true},
		{"a neighbour now and then", after(10*s, 11*s, 10*s, 0), 0.1, true},
		{"the host took it", after(s, s, s, 500*ms), 0.5, true},
		{"under the limit", after(10*s, 10*s+200*ms, 10*s, 0), 0.02, false},
		{"no time passed", after(0, s, 0, 0), 0, false},
	}
	for _, tt := range tests {
		d := between(from, tt.to)
		share, noisy := d.share(), d.noisy(0.03)
		if diff := share - tt.share; diff > 1e-9 || diff < -1e-9 || noisy != tt.noisy {
			t.Errorf("%s: others %v, noisy %v; want %v, %v", tt.name, share, noisy, tt.share, tt.noisy)
		}
	}
}
