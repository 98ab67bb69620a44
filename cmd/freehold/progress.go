package main

import (
	"fmt"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"
)

// progress is a bar on a terminal, and nothing anywhere else. Its methods may
// be called by several goroutines.
type progress struct {
	bar *progressbar.ProgressBar
}

const progressSteps = 1000

// newProgress returns a bar on w.
func newProgress(w io.Writer) *progress {
	if !isTerminal(w) {
		return &progress{}
	}
	bar := progressbar.NewOptions(progressSteps,
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetWidth(24),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionShowDescriptionAtLineEnd(),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionSetElapsedTime(false),
		progressbar.OptionUseANSICodes(true),
		progressbar.OptionClearOnFinish(),
	)
	return &progress{bar: bar}
}

// show sets the bar to a fraction of 1, and the text behind it.
func (p *progress) show(fraction float64, text string) {
	if p.bar == nil {
		return
	}
	p.bar.Describe(text)
	_ = p.bar.Set(int(fraction * (progressSteps - 1)))
}

// print writes a line above the bar.
func (p *progress) print(w io.Writer, text string) {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
	fmt.Fprintln(w, text)
}

// close takes the bar away.
func (p *progress) close() {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
}
