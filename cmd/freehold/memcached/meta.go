// Meta commands: mg, ms, md, ma, me and mn. metaflags.go parses their flags.

package memcached

import (
	"strconv"
	"time"

	"github.com/freehold-go/freehold/cache"
)

// result replies with a code and the returned flags. A quiet command has no reply of HD or EN.
func (s *session) result(m *meta, code string, e *cache.Entry) {
	if m.has('q') && (code == "HD" || code == "EN") {
		return
	}
	s.out = append(s.out, code...)
	s.echo(m, e)
	s.out = append(s.out, crlf...)
}

// echo appends the returned flags. e is the entry, or nil if there is none.
func (s *session) echo(m *meta, e *cache.Entry) {
	for f, rest := nextWord(m.flags); len(f) > 0; f, rest = nextWord(rest) {
		switch f[0] {
		case 'O':
			s.out = append(append(s.out, ' '), f...)
		case 'k':
			s.out = append(append(s.out, ' ', 'k'), m.word...)
			if m.has('b') {
				s.out = append(s.out, ' ', 'b')
			}
		}
		if e != nil {
			s.echoEntry(m, f[0], e)
		}
	}
}

// echoEntry appends a flag that shows a part of the entry. T changes e, so a later t shows it.
func (s *session) echoEntry(m *meta, letter byte, e *cache.Entry) {
	switch letter {
	case 'c':
		s.number(letter, e.Version)
	case 'f':
		s.number(letter, e.Flags&flagBits)
	case 's':
		s.number(letter, uint64(len(e.Value)))
	case 'h':
		s.number(letter, uint64(bit(e.Read)))
	case 'l':
		s.number(letter, uint64(seconds(e.Idle)))
	case 't':
		s.out = strconv.AppendInt(append(s.out, ' ', 't'), left(e), 10)
	case 'T':
		if !m.written {
			e.TTL = m.life // so that t after it shows the new one
		}
	}
}

func seconds(d time.Duration) int64 { return int64(d / time.Second) }

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

func yesNo(b bool) string { return [...]string{"no", "yes"}[bit(b)] }

func (s *session) number(letter byte, n uint64) {
	s.out = strconv.AppendUint(append(s.out, ' ', letter), n, 10)
}

// metaGet shows an entry, and may change it. T changes the TTL. N adds a missing entry. For an
// entry that expires within R, or that md has marked, one client wins the right to fetch it anew.
func (s *session) metaGet(words [][]byte, _ []byte) {
	var m meta
	if !s.parse(&m, words, 2) {
		return
	}
	s.metaFetch(&m, &look{})
}

// shown returns the size of the value in the reply.
func (m *meta) shown(e *cache.Entry) int {
	if m.showsValue(e) {
		return len(e.Value)
	}
	return 0
}

// showsValue reports whether the reply has the value. With C, mg shows it only if the client has
// another version.
func (m *meta) showsValue(e *cache.Entry) bool {
	return m.has('v') && !(m.has('C') && m.cas == e.Version)
}

// metaLookup is mg in a run of lookups, with the entry e. If the client may win e, it sets later.
func (s *session) metaLookup(m *meta, e *cache.Entry, found bool) {
	if found && m.winnable(e) {
		s.later, s.look = m, look{before: *e, again: true}
		return
	}
	if !s.fits(m.shown(e)) {
		return
	}
	s.counts[cmdMeta].Add(1)
	s.tellFetch(m.key, found, len(e.Value))
	if s.count(found, getHits, cmdGet); found {
		s.show(m, e, false)
	} else {
		s.result(m, "EN", nil)
	}
}

// A look is the state of an mg that takes several steps.
type look struct {
	before cache.Entry // the entry at the first step, without its value; empty if mg has added it
	again  bool        // nothing is shown yet: the client may win the entry first
	wins   bool
	made   bool
}

// metaFetch runs an mg.
func (s *session) metaFetch(m *meta, l *look) {
	s.counts[cmdMeta].Add(1)
	s.tellFetchBefore(m.key)
	found := l.again || s.metaRead(m, l)
	for {
		switch {
		case l.again:
			l.wins = s.win(m)
		case !found && m.has('N') && !l.made:
			l.made = true
			l.wins = s.make(m)
		default:
			if m.has('T') {
				s.count(found, touchHits, cmdTouch)
			} else {
				s.count(found && !l.made, getHits, cmdGet)
			}
			if !found {
				s.result(m, "EN", nil)
			}
			return
		}
		found = s.metaRead(m, l)
	}
}

// metaRead shows the entry, and touches it as the flags say. If the client may win the entry first,
// metaRead only sets again.
func (s *session) metaRead(m *meta, l *look) (found bool) {
	isFirst := !l.again && !l.made
	show := func(e cache.Entry) {
		unpack(&e)
		if isFirst {
			l.before, isFirst = e, false
			l.before.Value = nil // valid in this call only; freeholdvet asks for it
		}
		l.again = !l.wins && m.winnable(&e)
		if l.again || !s.fits(m.shown(&e)) {
			return
		}
		e.Read, e.Idle = l.before.Read, l.before.Idle // as before the first step
		s.show(m, &e, l.wins)
	}
	l.again = false
	for more := true; more; more = s.again() {
		switch {
		case m.has('T'):
			found = s.touched(m.key, m.life, func(e *cache.Entry) bool {
				show(*e)
				return !l.again && s.short == 0
			})
		case m.has('u'):
			found = s.cache.Peek(m.key, show)
		default:
			found = s.cache.View(m.key, show)
		}
	}
	return found
}

// winnable reports whether a client may win the right to fetch the entry anew. A T before R counts:
// R compares the new TTL.
func (m *meta) winnable(e *cache.Entry) bool {
	at := *e
	if m.touchFirst {
		at.TTL = m.life
	}
	low := m.has('R') && at.TTL != 0 && left(&at) < int64(m.recache/time.Second)
	return e.Flags&won == 0 && (low || e.Flags&stale != 0)
}

// win marks the entry as won, and reports whether this client has won it.
func (s *session) win(m *meta) (wins bool) {
	s.cache.Update(m.key, func(e *cache.Entry, found bool) cache.Change {
		if wins = found && m.winnable(e); !wins {
			return cache.Keep
		}
		e.Flags |= won
		return cache.Mark
	})
	return wins
}

// make adds an empty entry that this client has won. It returns false if there is one.
func (s *session) make(m *meta) bool {
	e := cache.Entry{Flags: won, TTL: m.fresh}
	r := s.pack(m.key, &e, m.chosen, false)
	for r == full && s.makeRoom() {
		r = s.pack(m.key, &e, m.chosen, false)
	}
	if r != stored {
		return false
	}
	added, _ := s.cache.Add(m.key, e)
	return added
}

// show replies with the entry.
func (s *session) show(m *meta, e *cache.Entry, wins bool) {
	value, showsValue := e.Value, m.showsValue(e)
	if showsValue {
		s.out = strconv.AppendUint(append(s.out, "VA "...), uint64(len(value)), 10)
	} else {
		s.out = append(s.out, "HD"...)
	}
	s.echo(m, e)
	if e.Flags&won != 0 && !wins {
		s.out = append(s.out, " Z"...)
	}
	if e.Flags&stale != 0 {
		s.out = append(s.out, " X"...)
	}
	if wins {
		s.out = append(s.out, " W"...)
	}
	s.out = append(s.out, crlf...)
	if showsValue {
		s.out = append(append(s.out, value...), crlf...)
	}
}

// metaSet is ms, for all storage commands.
func (s *session) metaSet(words [][]byte, data []byte) {
	var m meta
	if !s.parse(&m, words, 3) {
		return
	}
	s.counts[cmdMeta].Add(1)
	w := write{
		key: m.key, value: data, mode: m.mode, flags: m.clientFlags, ttl: m.life, cas: m.cas,
		vivify: m.has('N'), fresh: m.fresh, chosen: m.chosen,
	}
	w.hasCAS = m.cas > 0 || m.has('C') && !w.joins() // joins and ma take C0 as none, as memcached's do
	switch w.mode {
	case 0:
		w.mode = setMode
	case setMode, addMode, replaceMode, appendMode, prependMode:
	default:
		s.reply("CLIENT_ERROR invalid mode for ms M token")
		return
	}
	w.stale = m.has('I') && m.cas > 0 && (w.mode == setMode || w.mode == replaceMode)
	r := s.write(&w)
	m.written = true
	s.metaReply(&m, r, &w.result)
}

// metaReply replies with a result. e is the stored entry, or nil.
func (s *session) metaReply(m *meta, r result, e *cache.Entry) {
	if r >= refused {
		s.reply(metaReplies[r])
		return
	}
	s.result(m, metaReplies[r], e)
}

// metaDelete deletes an entry, or marks it as stale.
func (s *session) metaDelete(words [][]byte, _ []byte) {
	var m meta
	if !s.parse(&m, words, 2) {
		return
	}
	s.counts[cmdMeta].Add(1)
	r, size := stored, 0
	s.tellFetchBefore(m.key)
	_, err := s.update(m.key, func(e *cache.Entry, found bool) cache.Change {
		switch r, size = stored, len(e.Value); {
		case !found:
			r = notFound
			return cache.Remove // also from a snapshot that is being loaded
		case m.has('C') && m.cas != e.Version:
			r = exists
			return cache.Keep
		case m.delete(e) == cache.Remove:
			return cache.Remove
		}
		if r = s.pack(m.key, e, m.chosen, false); r != stored {
			return cache.Keep
		}
		return cache.Store
	})
	if err != nil {
		r = failed(err)
	}
	s.countEither(r == stored, deleteHits, deleteMisses)
	if r == stored && !m.has('I') {
		s.tellDelete(m.key, "md", size)
	}
	s.metaReply(&m, r, nil)
}

// delete applies md to the entry.
func (m *meta) delete(e *cache.Entry) cache.Change {
	if !m.has('I') && !m.has('x') {
		return cache.Remove
	}
	if m.has('x') {
		e.Value, e.Flags = nil, e.Flags&^flagBits
	}
	if m.has('I') {
		e.Flags = e.Flags&^won | stale
		if m.has('T') {
			e.TTL = m.life
		}
	}
	return cache.Store
}

// metaArithmetic is ma, for incr and decr.
func (s *session) metaArithmetic(words [][]byte, _ []byte) {
	var m meta
	if !s.parse(&m, words, 2) {
		return
	}
	s.counts[cmdMeta].Add(1)
	n := number{
		key: m.key, delta: m.delta, cas: m.cas, vivify: m.has('N'), initial: m.initial, fresh: m.fresh,
		hasTTL: m.has('T'), ttl: m.life, chosen: m.chosen,
	}
	if m.touchLast {
		n.fresh = m.life
	}
	switch m.mode {
	case 0, 'I', 'i', '+':
	case 'D', 'd', '-':
		n.down = true
	default:
		s.reply("CLIENT_ERROR invalid mode for ma M token")
		return
	}
	r, version := s.add(&n)
	if r != stored {
		s.metaReply(&m, r, nil)
		return
	}
	m.seen &^= setOf("C") // which hides no value here
	value := strconv.AppendUint(s.scratch[:0], n.value, 10)
	s.scratch = value
	e := cache.Entry{Value: value, TTL: n.expiry, Version: version}
	switch {
	case !m.has('v'):
		s.result(&m, "HD", &e)
	case !m.has('q'):
		s.show(&m, &e, false)
	}
}

// metaDebug shows all of an entry except its value.
func (s *session) metaDebug(words [][]byte, _ []byte) {
	var m meta
	if !s.parse(&m, words, 2) {
		return
	}
	s.counts[cmdMeta].Add(1)
	if !s.cache.Peek(m.key, func(e cache.Entry) {
		unpack(&e)
		s.out = append(append(s.out, "ME "...), m.word...)
		s.out = strconv.AppendInt(append(s.out, " exp="...), left(&e), 10)
		s.out = strconv.AppendInt(append(s.out, " la="...), seconds(e.Idle), 10)
		s.out = strconv.AppendUint(append(s.out, " cas="...), e.Version, 10)
		s.out = append(append(append(s.out, " fetch="...), yesNo(e.Read)...), " cls=1 size="...)
		s.out = strconv.AppendInt(s.out, int64(len(m.key)+len(e.Value)), 10)
		s.out = append(s.out, crlf...)
	}) {
		s.reply("EN")
	}
}

func (s *session) metaNoop([][]byte, []byte) { s.reply("MN") }
