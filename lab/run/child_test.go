//go:build unix

package run

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/freehold-go/freehold/lab/wire"
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
		err := Child(t.Context(), exec.CommandContext(t.Context(), "sh", "-c", tt.script), func(m wire.Message) { seen = m.Progress }, &got)
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

// A child removes what it has made before it ends.
func TestChildEndsInOrder(t *testing.T) {
	made := filepath.Join(t.TempDir(), "made")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", `trap 'rm "$0"; exit 1' INT; touch "$0"; while :; do sleep 0.01; done`, made)
	endInOrder(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(made); err == nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := cmd.Wait(); err == nil {
		t.Error("the command was not interrupted")
	}
	if _, err := os.Stat(made); err == nil {
		t.Error("what the command had made is left")
	}
}
