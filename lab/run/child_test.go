//go:build unix

package run

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
)

func TestChild(t *testing.T) {
	for _, tt := range []struct {
		script string
		want   string // of the error
		got    int
	}{
		{`echo '{"progress":0.5}'; echo '{"result":7}'`, "", 7},
		{`echo '{"result":7,"failed":"too late"}'`, "too late", 7},
		{`echo '{"unavailable":"not here"}'`, "not here", 0},
		{`echo '{"progress":0.5}'`, "without a result", 0},
		{`echo '{"progress":0.5}'; echo '{"res'`, "without a result", 0},
		{`echo '{"result":"x"}'`, "cannot unmarshal", 0},
		{`echo '{"progress":0.5}'; echo no >&2; exit 3`, "exit status 3: no", 0},
		{`echo '{"progress":0.5}'; kill -KILL $$`, "signal: killed", 0},
	} {
		var got int
		var seen float64
		err := Child(t.Context(), exec.CommandContext(t.Context(), "sh", "-c", tt.script), func(m Message) { seen = m.Progress }, &got)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) || got != tt.got {
			t.Errorf("%s: %d, %v", tt.script, got, err)
		}
		if strings.Contains(tt.script, "progress") && seen != 0.5 {
			t.Errorf("%s: progress %v", tt.script, seen)
		}
		if Killed(err) != strings.Contains(tt.script, "KILL") || errors.As(err, new(UnavailableError)) != strings.Contains(tt.script, "unavailable") {
			t.Errorf("%s: %v", tt.script, err)
		}
	}
}
