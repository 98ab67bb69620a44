package sqlite_test

import (
	"database/sql"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/freehold-go/freehold"
	freeholdsqlite "github.com/freehold-go/freehold/adapters/sqlite"
	"github.com/freehold-go/freehold/internal/panics"
	"github.com/freehold-go/freehold/internal/test/suite"
	"modernc.org/libc"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// heap is SQLite's in this process, unless FREEHOLD_TEST_DEFAULT=1 leaves SQLite its own memory.
var heap = freehold.NewHeap(&freehold.HeapOptions{Name: "sqlite", MaxBytes: 384 << 20})

func TestMain(m *testing.M) {
	if os.Getenv("FREEHOLD_TEST_DEFAULT") == "" {
		if err := freeholdsqlite.Use(heap); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// open returns a database in memory, with one connection.
func open(t testing.TB) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	exec(t, db, "CREATE TABLE rows (id INTEGER PRIMARY KEY, body TEXT)")
	return db
}

func exec(t testing.TB, db *sql.DB, statement string) {
	t.Helper()
	if _, err := db.Exec(statement); err != nil {
		t.Fatal(err)
	}
}

// fill has SQLite insert n rows of some bytes each.
func fill(n, bytes int) string {
	return fmt.Sprintf("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < %d) INSERT INTO rows(body) SELECT printf('%%0%dd', i) FROM n", n, bytes)
}

func Example() {
	if err := freeholdsqlite.Use(heap); err != nil { // before the first connection
		fmt.Println(err)
		return
	}
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	var version string
	if err := db.QueryRow("SELECT 'SQLite ' || substr(sqlite_version(), 1, 1)").Scan(&version); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(version, heap.Stats().LiveBytes > 10_000)
	// Output: SQLite 3 true
}

// At the heap's limit a statement fails with SQLite's error, and the connection goes on.
func TestLimit(t *testing.T) {
	db := open(t)
	defer db.Close()
	_, err := db.Exec(fill(100_000, 10_000)) // 1 GB
	if e := (*sqlite.Error)(nil); !errors.As(err, &e) || e.Code() != sqlite3.SQLITE_NOMEM {
		t.Fatal(err)
	}
	if st := heap.Stats(); st.Committed > st.MaxBytes || st.Refusals == 0 {
		t.Errorf("%d bytes committed, limit %d, %d refusals", st.Committed, st.MaxBytes, st.Refusals)
	}
	exec(t, db, fill(10, 100))
	var rows int
	if err := db.QueryRow("SELECT count(*) FROM rows").Scan(&rows); err != nil || rows != 10 {
		t.Errorf("%d rows after the statement that failed: %v", rows, err)
	}
}

// The largest sizes that SQLite asks for are refused as others are, though blocks of them are larger than an int32.
func TestLargestSizes(t *testing.T) {
	open(t).Close() // has SQLite start
	tls := libc.NewTLS()
	defer tls.Close()
	p := sqlite3.Xsqlite3_malloc(tls, 100)
	defer sqlite3.Xsqlite3_free(tls, p)
	for _, n := range []int32{math.MaxInt32, math.MaxInt32 - 256, math.MaxInt32 - 4096, 1 << 30} {
		if sqlite3.Xsqlite3_malloc(tls, n) != 0 || sqlite3.Xsqlite3_realloc(tls, p, n) != 0 {
			t.Errorf("%d bytes are had", n)
		}
	}
}

// A database that is closed leaves nothing on the heap, and one that is open has its rows there.
func TestCloseFreesAll(t *testing.T) {
	open(t).Close() // what SQLite keeps for good
	before := heap.Stats().LiveBytes
	db := open(t)
	exec(t, db, fill(1000, 1000))
	exec(t, db, "CREATE INDEX bodies ON rows(body)")
	if during := heap.Stats().LiveBytes; during < before+2_000_000 {
		t.Errorf("%d bytes live for two million in rows and an index", during-before)
	}
	db.Close()
	if after := heap.Stats().LiveBytes; after > before {
		t.Errorf("%d bytes were not freed", after-before)
	}
}

// SQLite does not change its memory while it has some.
func TestTooLate(t *testing.T) {
	db := open(t)
	defer db.Close()
	if err := freeholdsqlite.Use(heap); err != nil {
		t.Errorf("the same heap again: %v", err)
	}
	if err := freeholdsqlite.Use(freehold.Default()); err != freeholdsqlite.ErrTooLate {
		t.Errorf("another heap: %v", err)
	}
	panics.Want(t, "freehold: sqlite.Use: h is nil", func() { freeholdsqlite.Use(nil) })
}

// A database that was opened before Use keeps its memory: the test's process starts another for that.
func TestUseAfterOpen(t *testing.T) {
	if os.Getenv("FREEHOLD_TEST_DEFAULT") == "" {
		out := suite.Rerun(t, "FREEHOLD_TEST_DEFAULT=1")
		if !strings.Contains(out, "PASS") {
			t.Error(out)
		}
		return
	}
	db := open(t)
	defer db.Close()
	if err := freeholdsqlite.Use(heap); err != freeholdsqlite.ErrTooLate {
		t.Error(err)
	}
}

// A table in memory of 200,000 rows of 200 bytes is built, indexed, updated and dropped. FREEHOLD_TEST_DEFAULT=1 runs it on SQLite's own memory.
func BenchmarkTable(b *testing.B) {
	end := suite.Footprint(b)
	for b.Loop() {
		db := open(b)
		exec(b, db, fill(200_000, 200))
		exec(b, db, "CREATE INDEX bodies ON rows(substr(body, -16))")
		exec(b, db, "UPDATE rows SET body = body || body WHERE id % 2")
		db.Close()
	}
	end()
}
