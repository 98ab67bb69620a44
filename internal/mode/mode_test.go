package mode

import (
	"fmt"
	"strings"
	"testing"
)

// Each row has the results of the functions of one kind of mode for a value of the variable.
func TestModes(t *testing.T) {
	none := `freehold: FREEHOLD_DEBUG: no mode %q; there are ` + strings.Join(known, ", ")
	number := func(s set) string { n, on := s.bytes("profile", 1, 7); return fmt.Sprint(n, on) }
	quarantine := func(s set) string { n, on := s.quarantine(); return fmt.Sprint(n, on) }
	oneIn := func(s set) string { n, valued, on := s.oneIn("guard"); return fmt.Sprint(n, valued, on) }
	alone := func(s set) string { return fmt.Sprint(s.on("leak")) }
	for _, tt := range []struct {
		variable string
		ask      func(set) string
		want     string
		report   string
	}{
		{"", number, "7 false", ""},
		{"profile", number, "7 true", ""},
		{"profile=", number, "7 true", ""},
		{" , profile=3 ,", number, "3 true", ""},
		{"profile=2,profile=4", number, "4 true", ""},
		{"profile=0", number, "0 false", "freehold: FREEHOLD_DEBUG: profile=0, want a number of bytes from 1 on; the mode is off"},
		{"profile=1e3", number, "0 false", "freehold: FREEHOLD_DEBUG: profile=1e3, want a number of bytes from 1 on; the mode is off"},
		{"prof=1", number, "7 false", fmt.Sprintf(none, "prof")},
		{"what,profile", number, "7 true", fmt.Sprintf(none, "what")},
		{"", quarantine, "1048576 false", ""},
		{"leak", quarantine, "1048576 false", ""},
		{"poison", quarantine, "1048576 true", ""},
		{"quarantine", quarantine, "1048576 true", ""},
		{"quarantine=4096,poison", quarantine, "4096 true", ""},
		{"quarantine=1", quarantine, "0 false", "freehold: FREEHOLD_DEBUG: quarantine=1, want a number of bytes from 4096 on; the mode is off"},
		{"quarantine=4095,poison", quarantine, "1048576 true", "freehold: FREEHOLD_DEBUG: quarantine=4095, want a number of bytes from 4096 on; the mode is off"},
		{"", alone, "false", ""},
		{"profile=3,leak", alone, "true", ""},
		{"leak=", alone, "true", ""},
		{"leak=2", alone, "false", "freehold: FREEHOLD_DEBUG: leak=2, want no value; the mode is off"},
		{"", oneIn, "1 false false", ""},
		{"guard", oneIn, "1 false true", ""},
		{"profile,guard=1/100", oneIn, "100 true true", ""},
		{"guard=1/1", oneIn, "1 true true", ""},
		{"guard=100", oneIn, "0 false false", "freehold: FREEHOLD_DEBUG: guard=100, want 1/N, or no value for all; the mode is off"},
		{"guard=1/0", oneIn, "0 false false", "freehold: FREEHOLD_DEBUG: guard=1/0, want 1/N, or no value for all; the mode is off"},
		{"guard=1/x", oneIn, "0 false false", "freehold: FREEHOLD_DEBUG: guard=1/x, want 1/N, or no value for all; the mode is off"},
	} {
		var reports []string
		got := tt.ask(parse(tt.variable, func(report string) { reports = append(reports, report) }))
		if report := strings.Join(reports, "\n"); got != tt.want || report != tt.report {
			t.Errorf("%q: %s, %q, want %s, %q", tt.variable, got, report, tt.want, tt.report)
		}
	}
}

// An error is reported once, even if several packages ask for its mode.
func TestReportsComeOnce(t *testing.T) {
	var reports []string
	s := parse("poison=3", once(func(report string) { reports = append(reports, report) }))
	//lint:ignore SA4000 the second call must not report
	if s.on("poison") || s.on("poison") || len(reports) != 1 {
		t.Errorf("%q", reports)
	}
}
