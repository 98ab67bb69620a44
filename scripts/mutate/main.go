// Mutate breaks promises on purpose, one at a time, and says whether a test
// notices.
//
//	go run ./scripts/mutate [-run regexp] [-j n] [-timeout d]
//
// The promises are in the lists beside this file, heap.txt and others; list.go
// has their form. Each mutation is built and tested by way of -overlay, so that
// the checkout is never written to, and is then one of these:
//
//	killed    a test failed, or ran into the timeout: it is named
//	survived  every test passed: a test is missing
//	error     the mutation does not fit the code any more, does not build, or
//	          its tests fail without it
//
// The exit status is 1 unless every mutation was killed.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strings"
	"text/tabwriter"
	"time"
)

const module = "github.com/freehold-go/freehold"

func main() {
	run := flag.String("run", "", "try only the mutations whose `regexp` matches \"list: name\"")
	jobs := flag.Int("j", 1, "try `n` mutations at a time")
	timeout := flag.Duration("timeout", time.Minute, "a test that takes longer is a failed one")
	flag.Parse()
	if err := mutate(os.Stdout, *run, *jobs, *timeout); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

// mutate tries the mutations that match, and writes the outcome of each and a
// table of all to w.
func mutate(w io.Writer, match string, jobs int, timeout time.Duration) error {
	re, err := regexp.Compile(match)
	if err != nil {
		return err
	}
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return fmt.Errorf("finding the module: %w", err)
	}
	all, err := readLists(lists)
	if err != nil {
		return err
	}
	var chosen []mutation
	for _, m := range all {
		if re.MatchString(m.String()) {
			chosen = append(chosen, m)
		}
	}
	if len(chosen) == 0 {
		return fmt.Errorf("no mutation matches %q", match)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	r := newRunner(strings.TrimSpace(string(dir)), timeout)
	outcomes := r.tryAll(ctx, chosen, jobs, func(m mutation, o outcome) {
		fmt.Fprintf(w, "%-8s  %-6s  %v: %s\n", o.verdict, o.took.Round(100*time.Millisecond), m, o.reason)
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return summarize(w, chosen, outcomes)
}

// summarize writes a line for each list and returns an error unless every
// mutation was killed.
func summarize(w io.Writer, chosen []mutation, outcomes []outcome) error {
	counts := map[string]*[numVerdicts]int{}
	var order []string
	var total [numVerdicts]int
	for i, m := range chosen {
		if counts[m.list] == nil {
			counts[m.list] = new([numVerdicts]int)
			order = append(order, m.list)
		}
		counts[m.list][outcomes[i].verdict]++
		total[outcomes[i].verdict]++
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "\nlist\t%v\t%v\t%v\t\n", killed, survived, failed)
	for _, name := range order {
		c := counts[name]
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t\n", name, c[killed], c[survived], c[failed])
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if total[killed] < len(chosen) {
		return fmt.Errorf("of %d mutations %d survived, and %d could not be tried", len(chosen), total[survived], total[failed])
	}
	return nil
}
