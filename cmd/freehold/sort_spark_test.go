//go:build linux

package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/test/filetest"
)

// sparkJob ranges lines by a partitioner and pipes each partition through freehold sort; the parts
// in order are one sorted file.
const sparkJob = `
import os, sys
from pyspark import SparkConf, SparkContext
spark = SparkContext(conf=SparkConf().setMaster(sys.argv[2]).setAppName("sort").set("spark.ui.enabled", "false"))
spark.setLogLevel("ERROR")
(spark.textFile(sys.argv[1] + "/in", 8)
    .map(lambda line: (line, None))
    .repartitionAndSortWithinPartitions(8, lambda line: int(line[:2], 16) * 8 // 256)
    .keys()
    .pipe(os.environ["FREEHOLD"] + " sort", dict(os.environ), checkCode=True)
    .saveAsTextFile(sys.argv[1] + "/out"))
`

// Spark sorts by freehold sort: within one process, and in long tests 256 MiB by two workers, one of
// which is killed. PYTHON may name a Python that has pyspark.
func TestSortInSparksPipe(t *testing.T) {
	t.Run("one process", func(t *testing.T) { sparkSorts(t, "local[2]", 1<<20, false) })
	t.Run("two workers", func(t *testing.T) {
		if testing.Short() {
			t.Skip("it takes minutes")
		}
		sparkSorts(t, "local-cluster[2,1,1024]", 256<<20, true)
	})
}

func sparkSorts(t *testing.T, master string, size int, kills bool) {
	python := os.Getenv("PYTHON")
	if python == "" {
		python = "python3"
	}
	if exec.Command(python, "-c", "import pyspark").Run() != nil || exec.Command("java", "-version").Run() != nil {
		t.Skip("needs Java and pyspark")
	}
	dir := t.TempDir()
	in := freehold.Must(os.Create(filepath.Join(dir, "in")))
	out, random, sum := bufio.NewWriter(in), rand.New(rand.NewPCG(1, 2)), [sha256.Size]byte{}
	for n := 0; n < size; n += 100 {
		line := fmt.Appendf(nil, "%016x%083d", random.Uint64(), n)
		add(&sum, line)
		out.Write(append(line, '\n'))
	}
	filetest.Must(t, out.Flush())
	filetest.Must(t, in.Close())

	cmd := exec.CommandContext(t.Context(), python, "-c", sparkJob, dir, master)
	cmd.Env = append(os.Environ(), "FREEHOLD="+freehold.Must(os.Executable()), "SPARK_LOCAL_IP=127.0.0.1")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	filetest.Must(t, cmd.Start())
	if kills {
		killWorker(t, cmd.Process.Pid, filepath.Join(dir, "out"))
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v:\n%s", err, &said)
	}
	lines, last, got := 0, "", [sha256.Size]byte{}
	for _, part := range freehold.Must(filepath.Glob(filepath.Join(dir, "out", "part-*"))) {
		f := freehold.Must(os.Open(part))
		for s := bufio.NewScanner(f); s.Scan(); lines++ {
			if s.Text() < last {
				t.Fatalf("%s: %q after %q", part, s.Text(), last)
			}
			last = s.Text()
			add(&got, s.Bytes())
		}
		f.Close()
	}
	if want := (size + 99) / 100; lines != want || got != sum {
		t.Errorf("%d lines of %d, or others", lines, want)
	}
}

// add adds a line to a sum that does not depend on the order of lines.
func add(sum *[sha256.Size]byte, line []byte) {
	for i, b := range sha256.Sum256(line) {
		sum[i] += b
	}
}

// killWorker kills one of the job's executors once the job writes its results.
func killWorker(t *testing.T, job int, out string) {
	t.Helper()
	await(t, "the job writes", func() bool {
		parts, _ := filepath.Glob(filepath.Join(out, "_temporary", "0", "*"))
		return len(parts) > 0
	})
	for _, pid := range executors(job) {
		filetest.Must(t, syscall.Kill(pid, syscall.SIGKILL))
		return
	}
	t.Fatal("the job has no executors")
}

// executors returns the processes below a job that run its tasks.
func executors(job int) (pids []int) {
	all, _ := filepath.Glob("/proc/[0-9]*")
	below := map[int]bool{job: true}
	for changed := true; changed; {
		changed = false
		for _, dir := range all {
			stat, err := os.ReadFile(filepath.Join(dir, "stat"))
			pid, _ := strconv.Atoi(filepath.Base(dir))
			if err != nil || below[pid] {
				continue
			}
			fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
			if parent, _ := strconv.Atoi(fields[1]); below[parent] {
				below[pid], changed = true, true
				if line, _ := os.ReadFile(filepath.Join(dir, "cmdline")); bytes.Contains(line, []byte("CoarseGrainedExecutorBackend")) && bytes.HasPrefix(line, []byte("/")) {
					pids = append(pids, pid)
				}
			}
		}
	}
	return pids
}
