// Command freeholdvet reports mistakes with off-heap memory: Go pointers in it, use
// after Free, owners that are not closed, and more. Each of its analyzers explains
// itself:
//
//	freeholdvet help
//	freeholdvet help unclosed
//
// It runs on packages by itself, or within go vet, which caches its findings:
//
//	freeholdvet ./...
//	go vet -vettool=$(which freeholdvet) ./...
//
// A flag with the name of an analyzer runs only that analyzer; with =false it runs all others.
package main

import (
	"golang.org/x/tools/go/analysis/multichecker"

	"github.com/freehold-go/freehold/analysis"
)

func main() { multichecker.Main(analysis.Analyzers()...) }
