package plugin

import (
	"testing"

	"github.com/golangci/plugin-module-register/register"

	"github.com/freehold-go/freehold/analysis"
)

func TestPluginIsRegistered(t *testing.T) {
	new, err := register.GetPlugin("freeholdvet")
	if err != nil {
		t.Fatal(err)
	}
	linter, err := new(nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := linter.GetLoadMode(); got != register.LoadModeTypesInfo {
		t.Errorf("load mode %q", got)
	}
	analyzers, err := linter.BuildAnalyzers()
	if err != nil || len(analyzers) != len(analysis.Analyzers()) {
		t.Errorf("%d analyzers, error %v", len(analyzers), err)
	}
}
