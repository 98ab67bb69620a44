package sqlite_test

import (
	"database/sql"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
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

// heap is SQLite's heap in this process. With FREEHOLD_TEST_DEFAULT=1 SQLite keeps its own
// allocator.
var heap = freehold.NewHeap(&freehold.HeapOptions{Name: "sqlite", MaxBytes: 384 << 20})

func TestMain(m *testing.M) {
	if os.Getenv("FREEHOLD_TEST_DEFAULT") == "" {
		if err := freeholdsqlite.Use(heap); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// open returns an in-memory database with one connection.
func open(t testing.TB) *sql.DB { return openAt(t, ":memory:") }

func openAt(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", dsn)
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

// fill returns a statement that inserts n rows, each with a body of the given number of bytes.
func fill(n, bytes int) string {
	return fmt.Sprintf("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < %d) INSERT INTO rows(body) SELECT printf('%%0%dd', i) FROM n", n, bytes)
}

// Close of the last connection returns the memory to the system at once.
func TestCloseReturnsMemory(t *testing.T) {
	if os.Getenv("FREEHOLD_TEST_DEFAULT") != "" {
		t.Skip("SQLite has its own memory")
	}
	db := open(t)
	exec(t, db, fill(10_000, 1000))
	before := heap.Stats()
	freeholdsqlite.ForgetTrim()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if st := heap.Stats(); before.Resident < 10<<20 || st.Live != 0 || st.Resident > 1<<20 {
		t.Errorf("after Close %d blocks live, %d bytes of %d are resident", st.Live, st.Resident, before.Resident)
	}
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

// At the heap's limit a statement fails with SQLITE_NOMEM, and the connection still works.
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

// exhaust allocates the whole heap except left bytes. end frees the memory again.
func exhaust(t *testing.T, left int) (end func()) {
	t.Helper()
	var all [][]byte
	spare := freehold.Must(heap.Alloc(max(left, 1), 1))
	for size := 64 << 20; size >= 8; size /= 2 {
		for b, err := heap.Alloc(size, 1); err == nil; b, err = heap.Alloc(size, 1) {
			all = append(all, b)
		}
	}
	heap.Free(spare)
	return func() {
		for _, b := range all {
			heap.Free(b)
		}
	}
}

// Memory runs out at each point of a transaction. A statement or the transaction fails, and the
// database is as it was before or after the transaction: in memory, and in a file with either
// kind of journal.
func TestMemoryRunsOutInATransaction(t *testing.T) {
	const rows, changed = 300, "UPDATE rows SET body = body || 'x'"
	for _, path := range []string{":memory:", "delete", "wal"} {
		t.Run(path, func(t *testing.T) {
			dsn := path
			if path != ":memory:" {
				dsn = filepath.Join(t.TempDir(), "db") + "?_pragma=journal_mode(" + path + ")&_pragma=cache_size(10)"
			}
			db := openAt(t, dsn)
			defer db.Close()
			exec(t, db, "CREATE INDEX bodies ON rows(body)")
			exec(t, db, fill(rows, 500))
			length, ended := 500, [4]int{} // ends in BEGIN, in the change, in COMMIT, and without error
			for left := 0; left < 4<<20; left += 1<<12 + left/4 {
				end := exhaust(t, left)
				var err error
				stage := 0
				for _, statement := range []string{"BEGIN", changed, "COMMIT"} {
					if _, err = db.Exec(statement); err != nil {
						break
					}
					stage++
				}
				end()
				ended[stage]++
				if e := (*sqlite.Error)(nil); err != nil && (!errors.As(err, &e) || e.Code() != sqlite3.SQLITE_NOMEM) {
					t.Fatalf("%d bytes left: %v", left, err)
				}
				if err != nil {
					db.Exec("ROLLBACK") // it fails if SQLite has rolled back itself
				} else {
					length++
				}
				var check string
				var n, sum int
				err = db.QueryRow("PRAGMA integrity_check").Scan(&check)
				if err = errors.Join(err, db.QueryRow("SELECT count(*), sum(length(body)) FROM rows").Scan(&n, &sum)); err != nil || check != "ok" || n != rows || sum != rows*length {
					t.Fatalf("%d bytes left: %s, %d rows, %d bytes of %d: %v", left, check, n, sum, rows*length, err)
				}
			}
			if ended[1] == 0 || ended[3] == 0 {
				t.Errorf("transactions that ended before, in and behind the change, and were complete: %d", ended)
			}
		})
	}
}

// The largest sizes that SQLite asks for are refused, though their blocks exceed an int32.
func TestLargestSizes(t *testing.T) {
	open(t).Close() // this starts SQLite
	tls := libc.NewTLS()
	defer tls.Close()
	p := sqlite3.Xsqlite3_malloc(tls, 100)
	defer sqlite3.Xsqlite3_free(tls, p)
	for _, n := range []int32{math.MaxInt32, math.MaxInt32 - 256, math.MaxInt32 - 4096, 1 << 30} {
		if sqlite3.Xsqlite3_malloc(tls, n) != 0 || sqlite3.Xsqlite3_realloc(tls, p, n) != 0 {
			t.Errorf("a request for %d bytes succeeded", n)
		}
	}
}

// The rows of an open database are on the heap. Closing it frees all of its memory.
func TestCloseFreesAll(t *testing.T) {
	open(t).Close() // this allocates the memory that SQLite keeps for good
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

// Use fails while SQLite has memory.
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

// The first heap stays, even before a connection is opened. The test runs itself in a new
// process.
func TestUseOfAnotherHeap(t *testing.T) {
	if os.Getenv("FREEHOLD_TEST_DEFAULT") == "" {
		if out := suite.Rerun(t, "FREEHOLD_TEST_DEFAULT=1"); !strings.Contains(out, "PASS") {
			t.Error(out)
		}
		return
	}
	for i, tt := range []struct {
		heap *freehold.Heap
		want error
	}{{heap, nil}, {freehold.Default(), freeholdsqlite.ErrTooLate}, {heap, nil}} {
		if err := freeholdsqlite.Use(tt.heap); err != tt.want {
			t.Errorf("Use number %d: %v, want %v", i, err, tt.want)
		}
	}
	db := open(t)
	defer db.Close()
	if heap.Stats().LiveBytes == 0 {
		t.Error("SQLite has nothing of the first heap")
	}
}

// Use fails once a database is open. The test runs itself in a new process.
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

// An in-memory table of 200,000 rows of 200 bytes is built, indexed, updated and dropped.
// FREEHOLD_TEST_DEFAULT=1 runs it on SQLite's own memory.
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
