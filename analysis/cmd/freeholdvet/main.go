// Command freeholdvet reports mistakes with off-heap memory: Go pointers in it, use
// after Free, owners that are not closed, and more. Each of its analyzers explains
// itself:
//
//	freeholdvet help
//	freeholdvet help unclosed
//
// It runs on packages by itself, and within go vet, which caches what it finds:
//
//	freeholdvet ./...
//	go vet -vettool=$(which freeholdvet) ./...
//
// A flag with the name of an analyzer runs that one alone, or with =false all but
// that one.
package main

import (
	"golang.org/x/tools/go/analysis/multichecker"

	"github.com/freehold-go/freehold/analysis"
)

func main() { multichecker.Main(analysis.Analyzers()...) }
