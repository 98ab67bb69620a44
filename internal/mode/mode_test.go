package mode

import (
	"slices"
	"strings"
	"testing"
)

func TestVariable(t *testing.T) {
	tests := []struct {
		variable string
		n        int
		on       bool
		reports  []string
	}{
		{"", 0, false, nil},
		{"profile", 7, true, nil},
		{"profile=", 7, true, nil},
		{" , profile=3 ,", 3, true, nil},
		{"profile=2,profile=4", 4, true, nil},
		{"profile=0", 0, false, []string{"freehold: FREEHOLD_DEBUG: profile=0, want a number from 1 on"}},
		{"profile=1e3", 0, false, []string{"freehold: FREEHOLD_DEBUG: profile=1e3, want a number from 1 on"}},
		{"prof=1", 0, false, []string{`freehold: FREEHOLD_DEBUG: no mode "prof"; there are ` + strings.Join(known, ", ")}},
		{"what,profile", 7, true, []string{`freehold: FREEHOLD_DEBUG: no mode "what"; there are ` + strings.Join(known, ", ")}},
	}
	for _, tt := range tests {
		var reports []string
		s := parse(tt.variable, func(report string) { reports = append(reports, report) })
		n, on := s.int("profile", 1, 7)
		if on != tt.on || on && n != tt.n || !slices.Equal(reports, tt.reports) {
			t.Errorf("%q: %d, %t, %q", tt.variable, n, on, reports)
		}
	}
}

func TestModesWithoutAValue(t *testing.T) {
	for variable, want := range map[string]struct {
		on      bool
		reports []string
	}{
		"":               {false, nil},
		"profile":        {false, nil},
		"leak":           {true, nil},
		"profile=3,leak": {true, nil},
		"leak=":          {true, nil},
		"leak=2":         {false, []string{"freehold: FREEHOLD_DEBUG: leak=2, want no value"}},
	} {
		var reports []string
		s := parse(variable, func(report string) { reports = append(reports, report) })
		if on := s.on("leak"); on != want.on || !slices.Equal(reports, want.reports) {
			t.Errorf("%q: %t, %q", variable, on, reports)
		}
	}
}

func TestOneIn(t *testing.T) {
	tests := []struct {
		variable   string
		n          int
		valued, on bool
		reports    []string
	}{
		{"", 0, false, false, nil},
		{"guard", 1, false, true, nil},
		{"profile,guard=1/100", 100, true, true, nil},
		{"guard=1/1", 1, true, true, nil},
		{"guard=100", 0, false, false, []string{"freehold: FREEHOLD_DEBUG: guard=100, want 1/N"}},
		{"guard=1/0", 0, false, false, []string{"freehold: FREEHOLD_DEBUG: guard=1/0, want 1/N"}},
		{"guard=1/x", 0, false, false, []string{"freehold: FREEHOLD_DEBUG: guard=1/x, want 1/N"}},
	}
	for _, tt := range tests {
		var reports []string
		s := parse(tt.variable, func(report string) { reports = append(reports, report) })
		n, valued, on := s.oneIn("guard")
		if on != tt.on || on && (n != tt.n || valued != tt.valued) || !slices.Equal(reports, tt.reports) {
			t.Errorf("%q: %d, %t, %t, %q", tt.variable, n, valued, on, reports)
		}
	}
}

// What several packages ask for is reported once.
func TestReportsComeOnce(t *testing.T) {
	var reports []string
	s := parse("poison=3", once(func(report string) { reports = append(reports, report) }))
	if s.on("poison") || s.on("poison") || len(reports) != 1 {
		t.Errorf("%q", reports)
	}
}
