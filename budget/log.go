// Log: the lines about a budget and about accounts.
//
// A line about the level is written by a goroutine of its own with no lock held, one at a time:
// a Logger may use the budget and its accounts, and one that blocks or panics stops nothing.

package budget

import (
	"context"
	"log/slog"
	"time"

	"github.com/freehold-go/freehold/budget/internal/pressure"
)

// fallTime is how long a level must stay lower before its fall is logged. So a cache at its limit,
// whose level often rises and falls, writes one line.
const fallTime = 10 * time.Second

// levelLog is the state of Options.Logger.
type levelLog struct {
	busy  bool      // a line is being written, and others wait for it
	level Level     // of the last line
	held  time.Time // when alarm.told was last at level or above
}

// report writes the line about the start. Lines about the level wait for it.
func (b *Budget) report() {
	if b.options.Logger != nil {
		b.options.Logger.Info("freehold: memory budget", "budget", b.Stats())
	}
	b.endLine()
}

// logLevel starts a line if the callbacks were told another level than the last line's. A fall must
// last fallTime first. mu is held.
func (b *Budget) logLevel(now time.Time) {
	l := &b.log
	if b.alarm.told >= l.level {
		l.held = now
	}
	falls := b.alarm.told < l.level
	if l.busy || b.alarm.told == l.level || falls && pressure.Ahead(now, l.held.Add(fallTime)) || b.options.Logger == nil || b.stopped {
		return
	}
	l.busy, l.level = true, b.alarm.told
	go b.writeLevel(Pressure{b.alarm.told, b.alarm.pressure.Wanted})
}

// writeLevel writes the line about a level.
func (b *Budget) writeLevel(p Pressure) {
	defer b.endLine()
	defer b.callbacks.catch("Options.Logger")
	st := b.Stats()
	st.Pressure = p
	logPressure(b.options.Logger, p, "budget", st)
}

// logPressure writes a line about a level.
func logPressure(l *slog.Logger, p Pressure, of string, st any) {
	level := slog.LevelWarn
	if p.Level == Calm {
		level = slog.LevelInfo
	}
	l.Log(context.Background(), level, "freehold: memory pressure", "pressure", p.Level.String(), of, st)
}

// endLine lets the next line be written.
func (b *Budget) endLine() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.log.busy = false
	b.logLevel(b.system.now())
}
