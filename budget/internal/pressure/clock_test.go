package pressure

import (
	"testing"
	"time"
)

// Times of one clock are ahead of it by less than a year.
func TestAhead(t *testing.T) {
	bubble, outside := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		now, t time.Time
		want   bool
	}{
		{outside, outside.Add(1), true}, {outside, outside, false}, {outside, outside.Add(-1), false},
		{outside, time.Time{}, false}, {outside, bubble, false}, {bubble, outside, false},
	} {
		if Ahead(tt.now, tt.t) != tt.want {
			t.Errorf("%v is ahead of %v: %t", tt.t, tt.now, !tt.want)
		}
	}
}
