// Log: the lines about a budget, one at a time.
//
// A goroutine of its own writes a line about the level, and holds no lock. So a Logger may use the
// budget and its accounts. A Logger that blocks or panics stops nothing.

package budget

import "time"

// report writes the line about the start. Lines about the level wait for it.
func (b *Budget) report() {
	if b.options.Logger != nil {
		b.options.Logger.Info("freehold: memory budget", "budget", b.Stats())
	}
	b.endLine()
}

// logLevel starts a line about the level of the last round if it is due. mu is held.
func (b *Budget) logLevel(now time.Time) {
	r := &b.reported
	due, _ := r.lineDue(r.level, now)
	if !due || b.logging || b.options.Logger == nil || b.stopped {
		return
	}
	b.logging, r.logged = true, r.level
	go b.writeLevel(Pressure{r.level, b.alarm.pressure.Wanted})
}

// writeLevel writes the line about a level.
func (b *Budget) writeLevel(p Pressure) {
	defer b.endLine()
	defer b.callbacks.catch("Options.Logger")
	st := b.Stats()
	st.Pressure = p
	logPressure(b.options.Logger, p, "budget", st)
}

// endLine lets the next line be written.
func (b *Budget) endLine() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.logging = false
	b.logLevel(b.system.now())
}
