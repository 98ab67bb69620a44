package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/test/filetest"
)

// Spark ranges records by a partitioner and pipes each partition through freehold sort; the
// parts in order are one sorted file. PYTHON may name a Python that has pyspark.
func TestSortInSparksPipe(t *testing.T) {
	python := os.Getenv("PYTHON")
	if python == "" {
		python = "python3"
	}
	if exec.Command(python, "-c", "import pyspark").Run() != nil || exec.Command("java", "-version").Run() != nil {
		t.Skip("needs Java and pyspark")
	}
	dir := t.TempDir()
	var lines [][]byte
	for i := range 20000 {
		lines = append(lines, []byte{byte('a' + i*7%26), byte('a' + i*131%23), byte('a' + i*57%19), byte('0' + i%10)})
	}
	filetest.Must(t, os.WriteFile(filepath.Join(dir, "in"), append(bytes.Join(lines, []byte("\n")), '\n'), 0o644))
	slices.SortFunc(lines, bytes.Compare)
	job := `
import os, sys
from pyspark import SparkContext
spark = SparkContext("local[2]", "sort")
spark.setLogLevel("ERROR")
(spark.textFile(sys.argv[1] + "/in", 3)
    .map(lambda line: (line, None))
    .repartitionAndSortWithinPartitions(4, lambda line: (ord(line[0]) - ord("a")) * 4 // 26)
    .keys()
    .pipe(os.environ["FREEHOLD"] + " sort", dict(os.environ), checkCode=True)
    .saveAsTextFile(sys.argv[1] + "/out"))
`
	cmd := exec.CommandContext(t.Context(), python, "-c", job, dir)
	cmd.Env = append(os.Environ(), "FREEHOLD="+freehold.Must(os.Executable()), "SPARK_LOCAL_IP=127.0.0.1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	var got []byte
	for _, part := range freehold.Must(filepath.Glob(filepath.Join(dir, "out", "part-*"))) {
		got = append(got, freehold.Must(os.ReadFile(part))...)
	}
	if !bytes.Equal(got, append(bytes.Join(lines, []byte("\n")), '\n')) {
		t.Errorf("%d bytes, which are not the %d sorted lines", len(got), len(lines))
	}
}
