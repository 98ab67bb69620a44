package main

import (
	"fmt"
	"os"
)

// progress is a progress line on a terminal. It prints nothing elsewhere.
type progress struct {
	name     string
	terminal *os.File // nil if there is none
	percent  int
}

func newProgress(f *os.File, name string) *progress {
	p := &progress{name: name, percent: -1}
	if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb" {
		p.terminal = f
	}
	return p
}

func (p *progress) show(done, of int) {
	if percent := int(int64(done) * 100 / int64(of)); p.terminal != nil && percent != p.percent {
		p.percent = percent
		fmt.Fprintf(p.terminal, "\r%s: %d%% added", p.name, percent)
	}
}

func (p *progress) clear() {
	if p.terminal != nil {
		fmt.Fprint(p.terminal, "\r\x1b[K")
	}
}
