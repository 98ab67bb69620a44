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
	"os"
	"strings"

	"golang.org/x/tools/go/analysis/multichecker"
	"golang.org/x/tools/go/analysis/unitchecker"

	"github.com/freehold-go/freehold/analysis"
)

func main() {
	if isGoVet(os.Args[1:]) {
		unitchecker.Main(analysis.Analyzers()...)
	}
	multichecker.Main(analysis.Analyzers()...)
}

// isGoVet reports whether the go command runs this: it asks for a version and for
// flags, and then passes the configuration of one package.
func isGoVet(args []string) bool {
	if len(args) == 0 {
		return false
	}
	last := args[len(args)-1]
	return last == "-V=full" || last == "-flags" || strings.HasSuffix(last, ".cfg")
}
