// Package plugin makes the analyzers of freehold a linter of golangci-lint, by its module plugin
// system: "golangci-lint custom" builds a golangci-lint with the plugin. docs/vet.md has the
// settings.
package plugin

import (
	"github.com/golangci/plugin-module-register/register"
	"golang.org/x/tools/go/analysis"

	offheap "github.com/freehold-go/freehold/analysis"
)

func init() { register.Plugin("freeholdvet", New) }

// New returns the linter. It has no settings.
func New(any) (register.LinterPlugin, error) { return linter{}, nil }

type linter struct{}

func (linter) BuildAnalyzers() ([]*analysis.Analyzer, error) { return offheap.Analyzers(), nil }
func (linter) GetLoadMode() string                           { return register.LoadModeTypesInfo }
