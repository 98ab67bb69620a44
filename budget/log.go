// Log: the lines about a budget and about accounts.
//
// A line about the level is written by a goroutine of its own with no lock held, one at a time:
// a Logger may use the budget and its accounts, and one that blocks or panics stops nothing.

package budget

import (
	"context"
	"log/slog"
	"time"
)

// report writes the line about the start. Lines about the level wait for it.
func (b *Budget) report() {
	if b.options.Logger != nil {
		b.options.Logger.Info("freehold: memory budget", "budget", b.Stats())
	}
	b.endLine()
}

// logLevel starts a line about the level of the last round if it is due. mu is held.
func (b *Budget) logLevel(now time.Time) {
	t := &b.told
	due, _ := t.line(t.level, now)
	if !due || b.logging || b.options.Logger == nil || b.stopped {
		return
	}
	b.logging, t.logged = true, t.level
	go b.writeLevel(Pressure{t.level, b.alarm.pressure.Wanted})
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
	b.logging = false
	b.logLevel(b.system.now())
}
