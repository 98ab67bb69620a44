// Package plugin makes the analyzers of freehold a linter of golangci-lint, by its
// module plugin system. With a .custom-gcl.yml like
//
//	version: v2.5.0
//	plugins:
//	  - module: github.com/freehold-go/freehold/analysis
//	    import: github.com/freehold-go/freehold/analysis/plugin
//	    version: v0.1.0
//
// the command "golangci-lint custom" builds a golangci-lint that has it. Enable it in
// .golangci.yml:
//
//	version: "2"
//	linters:
//	  enable: [freeholdvet]
//	  settings:
//	    custom:
//	      freeholdvet:
//	        type: module
//	        description: mistakes with off-heap memory
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
