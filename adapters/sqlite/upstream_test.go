// The tests of modernc.org/sqlite, on freehold.

package sqlite_test

import (
	"testing"

	"github.com/freehold-go/freehold/internal/test/suite"
)

// first is a package that gives SQLite its heap. Package vec uses SQLite in its init, so vec
// imports first.
const first = `package first

import (
	"github.com/freehold-go/freehold"
	freeholdsqlite "github.com/freehold-go/freehold/adapters/sqlite"
)

func init() {
	if err := freeholdsqlite.Use(freehold.Default()); err != nil {
		panic(err)
	}
}
`

// excluded are tests that cannot run here. TestConcurrentGoroutines runs itself with -race,
// which needs checkptr off: see the package's documentation. The expir subtests wait for a timer
// a thousand times.
const excluded = "^TestConcurrentGoroutines$|^TestRegisteredFunctions$/expir"

func TestSQLitesTests(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes minutes, most of them to build: make test-long")
	}
	m := suite.Copy(t, "modernc.org/sqlite")
	m.Write(t, "first/first.go", first)
	m.Write(t, "vec/first.go", "package vec\n\nimport _ \"modernc.org/sqlite/first\"\n")
	m.Write(t, "first.go", "package sqlite\n\nimport _ \"modernc.org/sqlite/first\"\n")
	m.Test(t, 140, "-skip", excluded, ".")
}
