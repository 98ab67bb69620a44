// Steps: the settings that follow from the figures.

package budget

import (
	"math"
	"testing"
	"time"
)

func TestStep(t *testing.T) {
	none := setting{math.MaxInt64, 100}
	off := func(limit int64) setting { return setting{limit, -1} }
	live := func(held, outside, live int64) goFigures { return goFigures{held: held, outside: outside, live: live} }
	tests := []struct {
		name   string
		f      figures
		before setting
		want   plan
	}{
		{"all is free",
			figures{limit: 1 * gib, headroom: 100 * mib, golang: live(100*mib, 2*mib, 50*mib)}, none,
			plan{setting: setting{924 * mib, 1500}}},
		{"the goal is a part of the limit for a small heap",
			figures{limit: 1000 * mib, headroom: 100 * mib, golang: live(10*mib, 2*mib, 4*mib)}, none,
			plan{setting: setting{900 * mib, ample}}},
		{"and all the room if that is less",
			figures{limit: 1000 * mib, headroom: 100 * mib, offHeap: 501 * mib, golang: live(10*mib, 2*mib, 4*mib)}, none,
			plan{setting: off(399 * mib)}},
		{"or if the heap is not small",
			figures{limit: 1000 * mib, headroom: 100 * mib, golang: live(100*mib, 2*mib, 57*mib)}, none,
			plan{setting: off(900 * mib)}},
		{"off-heap memory and others are left out",
			figures{limit: 4 * gib, headroom: 100 * mib, offHeap: 3 * gib, others: 24 * mib, golang: live(30*mib, 2*mib, 20*mib)}, none,
			plan{setting: off(900 * mib)}},
		{"the limit stays while it would change little",
			figures{limit: 4 * gib, headroom: 96 * mib, offHeap: 3 * gib, golang: live(30*mib, 2*mib, 20*mib)}, off(920 * mib),
			plan{setting: off(920 * mib)}},
		{"it falls when it would change more",
			figures{limit: 4 * gib, headroom: 96 * mib, offHeap: 3*gib + 60*mib, golang: live(30*mib, 2*mib, 20*mib)}, off(920 * mib),
			plan{setting: off(868 * mib)}},
		{"it rises when it would change more",
			figures{limit: 4 * gib, headroom: 96 * mib, offHeap: 3 * gib, golang: live(30*mib, 2*mib, 20*mib)}, off(900 * mib),
			plan{setting: off(928 * mib)}},
		{"the floor is one and a half of what is live",
			figures{limit: 1 * gib, headroom: 100 * mib, offHeap: 800 * mib, golang: live(180*mib, 10*mib, 100*mib)}, off(124 * mib),
			plan{setting: off(160*mib - 100*mib%100*150), short: 36 * mib, excess: 20 * mib}},
		{"the floor follows what is live, however large the limit is",
			figures{limit: 64 * gib, headroom: 512 * mib, offHeap: 64 * gib, golang: live(60*mib, 10*mib, 100*mib)}, off(30 * mib),
			plan{setting: off(160 * mib), short: 160*mib + 512*mib}},
		{"the floor of a small heap",
			figures{limit: 1 * gib, headroom: 100 * mib, offHeap: 2 * gib, golang: live(6*mib, 2*mib, 1*mib)}, none,
			plan{setting: off(10 * mib), short: 1*gib + 110*mib}},
		{"a limit below what is in use",
			figures{limit: 1 * mib, headroom: mib / 2, golang: live(20*mib, 2*mib, 4*mib)}, none,
			plan{setting: off(22 * mib), short: 9*mib + mib/2, excess: 10 * mib}},
		{"Go holds more than it may",
			figures{limit: 1 * gib, headroom: 100 * mib, offHeap: 700 * mib, golang: live(250*mib, 2*mib, 20*mib)}, off(924 * mib),
			plan{setting: off(250*mib + 250*mib/24), excess: 26 * mib}},
		{"the limit follows down what it holds",
			figures{limit: 1 * gib, headroom: 100 * mib, offHeap: 700 * mib, golang: live(236*mib, 2*mib, 20*mib)}, off(260 * mib),
			plan{setting: off(236*mib + 236*mib/24), excess: 12 * mib}},
		{"and not up again",
			figures{limit: 1 * gib, headroom: 100 * mib, offHeap: 700 * mib, golang: live(258*mib, 2*mib, 20*mib)}, off(260 * mib),
			plan{setting: off(260 * mib), excess: 34 * mib}},
		{"while somebody waits it is what Go may hold",
			figures{limit: 1 * gib, headroom: 100 * mib, offHeap: 700 * mib, golang: live(275*mib, 2*mib, 20*mib), pressed: true}, off(260 * mib),
			plan{setting: off(224 * mib), excess: 51 * mib}},
		{"unless half of the headroom is left",
			figures{limit: 1 * gib, headroom: 100 * mib, offHeap: 700 * mib, golang: live(274*mib, 2*mib, 20*mib), pressed: true}, off(260 * mib),
			plan{setting: off(260 * mib), excess: 50 * mib}},
		{"not below the floor",
			figures{limit: 1 * gib, headroom: 100 * mib, offHeap: 900 * mib, golang: live(161*mib, 10*mib, 100*mib)}, off(150 * mib),
			plan{setting: off(160*mib - 100*mib%100*150), short: 136 * mib, excess: 1 * mib}},
		{"the user's limit stays, and GOGC has the room as goal",
			figures{limit: 2 * gib, headroom: 48 * mib, golang: live(1000*mib, 2*mib, 500*mib), userLimit: true}, setting{300 * mib, 100},
			plan{setting: setting{300 * mib, 300}}},
		{"the user's limit stays where there is no room",
			figures{limit: 2 * gib, headroom: 48 * mib, offHeap: 3 * gib, golang: live(1000*mib, 0, 500*mib), userLimit: true}, setting{300 * mib, 100},
			plan{setting: setting{300 * mib, 100}, short: 3*gib - 2000*mib + 1000*mib}},
		{"a smaller heap by GOGC",
			figures{limit: 1 * gib, headroom: 100 * mib, goHeap: 200 * mib, golang: live(100*mib, 2*mib, 50*mib)}, none,
			plan{setting: setting{924 * mib, 300}}},
		{"never below 100",
			figures{limit: 1 * gib, headroom: 100 * mib, goHeap: 60 * mib, golang: live(100*mib, 2*mib, 50*mib)}, none,
			plan{setting: setting{924 * mib, 100}}},
		{"of physical memory the collector keeps its own pace",
			figures{limit: 12 * gib, headroom: 512 * mib, ofPhysical: true, golang: live(900*mib, 2*mib, 400*mib)}, none,
			plan{setting: setting{12*gib - 512*mib, 100}}},
		{"but lets a small heap grow to 64 MiB",
			figures{limit: 12 * gib, headroom: 512 * mib, ofPhysical: true, golang: live(30*mib, 2*mib, 16*mib)}, none,
			plan{setting: setting{12*gib - 512*mib, 300}}},
		{"and one of almost nothing no further",
			figures{limit: 12 * gib, headroom: 512 * mib, ofPhysical: true, golang: live(4*mib, 2*mib, 1*mib)}, none,
			plan{setting: setting{12*gib - 512*mib, 1600}}},
		{"until the limit is near",
			figures{limit: 12 * gib, headroom: 512 * mib, offHeap: 11 * gib, ofPhysical: true, golang: live(450*mib, 2*mib, 260*mib)}, none,
			plan{setting: off(512 * mib)}},
		{"with a limit of the user's too",
			figures{limit: 12 * gib, headroom: 512 * mib, ofPhysical: true, userLimit: true, golang: live(30*mib, 2*mib, 16*mib)}, setting{gib, 100},
			plan{setting: setting{gib, 300}}},
		{"or as GoHeap says",
			figures{limit: 12 * gib, headroom: 512 * mib, ofPhysical: true, goHeap: 200 * mib, golang: live(100*mib, 2*mib, 50*mib)}, none,
			plan{setting: setting{12*gib - 512*mib, 300}}},
		{"Go's smallest goal is not above the goal",
			figures{limit: 1 * gib, headroom: 100 * mib, goHeap: 200 * mib, golang: live(100*mib, 2*mib, 1*mib)}, none,
			plan{setting: setting{924 * mib, 5000}}},
		{"before the first collection",
			figures{limit: 1 * gib, headroom: 100 * mib, goHeap: 200 * mib, golang: live(4*mib, 2*mib, 0)}, none,
			plan{setting: setting{924 * mib, 5000}}},
		{"GOGC stays while it would change little",
			figures{limit: 1 * gib, headroom: 100 * mib, goHeap: 200 * mib, golang: live(100*mib, 2*mib, 50*mib)}, setting{924 * mib, 304},
			plan{setting: setting{924 * mib, 304}}},
		{"a heap as large as the room is off",
			figures{limit: 1 * gib, headroom: 100 * mib, goHeap: 924 * mib, golang: live(100*mib, 2*mib, 50*mib)}, none,
			plan{setting: off(924 * mib)}},
		{"the largest limit",
			figures{limit: math.MaxInt64, headroom: 512 * mib, goHeap: math.MaxInt64 / 2, golang: live(10*mib, 2*mib, 1)}, none,
			plan{setting: setting{math.MaxInt64 - 512*mib, math.MaxInt32}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.f.live = tt.f.golang.live
			got := step(tt.f, tt.before)
			got.over, got.spare = 0, 0 // see TestPatience
			if got != tt.want {
				t.Errorf("\n got %+v\nwant %+v", got, tt.want)
			}
		})
	}
}

// If the limit is the user's, Go may keep the memory that it holds.
func TestNeeded(t *testing.T) {
	f := figures{limit: 1100 * mib, headroom: 100 * mib, offHeap: 20 * mib, others: 3 * mib, golang: goFigures{held: 1001 * mib, outside: 2 * mib}, live: 100 * mib}
	if got, want := f.needed(), int64(20+3+2+150)*mib; got != want {
		t.Errorf("%d, want %d", got, want)
	}
	f.userLimit = true
	if got, want := f.needed(), int64(20+3+1001)*mib; got != want {
		t.Errorf("with a limit of the user's: %d, want %d", got, want)
	}
}

// A second step with the same figures changes nothing, so the settings cannot swing.
func TestStepSettles(t *testing.T) {
	f := figures{limit: 2 * gib, headroom: 100 * mib, golang: goFigures{held: 60 * mib, outside: 5 * mib, live: 30 * mib}}
	f.live = f.golang.live
	for _, f.goHeap = range []int64{0, 100 * mib} {
		before := setting{math.MaxInt64, 100}
		for f.offHeap = 0; f.offHeap < 3*gib; f.offHeap += 7 * mib {
			p := step(f, before)
			if again := step(f, p.setting); again.setting != p.setting {
				t.Fatalf("%+v: %+v, then %+v", f, p.setting, again.setting)
			}
			follow := f.golang.held + f.golang.held/slackShare
			if room := f.limit - f.headroom - f.offHeap; p.limit > room+room/100*steadyPercent && p.limit > follow+follow/100*steadyPercent {
				t.Fatalf("%+v: limit is %d", f, p.limit)
			}
			before = p.setting
		}
	}
}

// Who takes off-heap memory waits the longer the more of the headroom Go holds, if Go can give
// some back. How often collections run depends on that alone.
func TestPatience(t *testing.T) {
	tests := []struct {
		held, room int64 // MiB; the floor is 100, the headroom 400, and 12.5 are no matter
		wait       time.Duration
		pause      int64
	}{
		{300, 300, 0, 0},
		{400, 300, 0, 0},
		{401, 300, shortWait, 10},
		{500, 300, shortWait, 10},
		{501, 300, time.Second, 3},
		{600, 300, time.Second, 3},
		{601, 300, longWait, 1},
		{9000, 300, longWait, 1},
		{100, -1000, 0, 0}, // there is nothing to give back
		{112, -1000, 0, 0},
		{113, -1000, longWait, 0},
		{201, -1000, longWait, 10},
		{113, 0, shortWait, 0},
		{201, 0, time.Second, 10},
	}
	for _, tt := range tests {
		const headroom = 400 * mib
		f := figures{limit: 10 * gib, headroom: headroom, golang: goFigures{held: tt.held * mib, outside: 92 * mib}}
		f.offHeap = f.limit - headroom - tt.room*mib
		p := step(f, setting{gib, -1})
		if wait, pause := p.longestWait(headroom), p.reclaimPause(headroom); wait != tt.wait || pause != tt.pause {
			t.Errorf("%d MiB in a room of %d: %v, %d, want %v, %d", tt.held, tt.room, wait, pause, tt.wait, tt.pause)
		}
		f.userLimit = true
		p = step(f, setting{gib, -1})
		if wait, pause := p.longestWait(headroom), p.reclaimPause(headroom); wait != 0 || pause != 0 {
			t.Errorf("with a limit of the user's: %v, %d", wait, pause)
		}
	}
}

// What Go holds above its floor is not worth a wait below an eighth of that, or 2 MiB.
func TestSpareIsNotWorthAWait(t *testing.T) {
	for _, tt := range []struct{ outside, held, want int64 }{ // MiB
		{2, 12, 0}, {2, 13, 1},
		{72, 90, 0}, {72, 91, 1},
	} {
		f := figures{limit: gib, offHeap: 2 * gib, golang: goFigures{held: tt.held * mib, outside: tt.outside * mib}} // minGoHeap is 8 MiB
		if wait := step(f, setting{gib, -1}).longestWait(0); (wait > 0) != (tt.want > 0) {
			t.Errorf("%d MiB of a floor of %d: %v", tt.held, tt.outside+8, wait)
		}
	}
}

func TestPercentWithoutRoomAndLiveObjects(t *testing.T) {
	for _, room := range []int64{0, 1, -5} {
		if percent := percentFor(0, room, true, goFigures{}); percent != defaultGOGC {
			t.Errorf("GOGC for a room of %d is %d", room, percent)
		}
	}
}
