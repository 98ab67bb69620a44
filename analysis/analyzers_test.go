package analysis_test

import (
	"path/filepath"
	"strings"
	"testing"

	goanalysis "golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/freehold-go/freehold/analysis"
	"github.com/freehold-go/freehold/analysis/pointerfree"
)

// Each analyzer reports the findings that the packages in its folder of testdata want.
func TestAnalyzers(t *testing.T) {
	dir, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	// One analyzer in place of all, as the packages are loaded for each.
	all := &goanalysis.Analyzer{Name: "all", Doc: "all", FactTypes: pointerfree.Analyzer.FactTypes}
	var folders []string
	for _, a := range analysis.Analyzers() {
		all.Requires = append(all.Requires, a.Requires...)
		folders = append(folders, "./"+a.Name+"/...")
	}
	all.Run = func(pass *goanalysis.Pass) (any, error) {
		for _, a := range analysis.Analyzers() {
			if strings.HasPrefix(pass.Pkg.Path(), "freehold.test/"+a.Name) {
				return a.Run(pass)
			}
		}
		return pointerfree.Analyzer.Run(pass) // for the facts about what they import
	}
	if results := analysistest.Run(t, dir, all, folders...); len(results) < len(folders) {
		t.Errorf("%d packages", len(results))
	}
}
