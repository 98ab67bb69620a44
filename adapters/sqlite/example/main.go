// Command example has SQLite on a heap with a limit.
package main

import (
	"database/sql"
	"fmt"
	"log"

	"github.com/freehold-go/freehold"
	freeholdsqlite "github.com/freehold-go/freehold/adapters/sqlite"
	_ "modernc.org/sqlite"
)

func main() {
	heap := freehold.NewHeap(&freehold.HeapOptions{Name: "sqlite", MaxBytes: 256 << 20})
	if err := freeholdsqlite.Use(heap); err != nil { // before the first connection
		log.Fatal(err)
	}
	db := freehold.Must(sql.Open("sqlite", ":memory:"))
	defer db.Close()
	freehold.Must(db.Exec("CREATE TABLE numbers AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 100000) SELECT i FROM n"))
	fmt.Println(heap.Stats().LiveBytes>>20, "MiB off-heap")
}
