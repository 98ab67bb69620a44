package memcached

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A model has the items that the cache should have, and replies like the server. Its time does not
// pass.
type model struct {
	items map[string]*modelItem
	cas   map[string]string // the version that a key had when it was last asked for
	fresh map[string]bool   // whether it has that still
}

// A modelItem's ttl is what t shows.
type modelItem struct {
	value      string
	flags, ttl int
	won, stale bool
	read       bool
}

// exptimes are those that commands use: forever, expired, and later than any test ends.
var exptimes = []int{0, -1, 100, 2000}

// put stores an item, or nothing if it has expired.
func (m *model) put(key string, it modelItem) {
	m.fresh[key] = false
	if it.ttl < 0 {
		delete(m.items, key)
		return
	}
	m.items[key] = &it
}

// touch changes the TTL, which is no new version.
func (m *model) touch(key string, ttl int) {
	m.items[key].read = true
	if m.items[key].ttl = ttl; ttl < 0 {
		delete(m.items, key)
	}
}

// store runs a storage command, and returns NS, NF, EX or HD. vivify is the exptime of N, or -2.
func (m *model) store(mode byte, key string, it modelItem, cas string, vivify int) string {
	old := m.items[key]
	joins := mode == appendMode || mode == prependMode
	if joins && cas == "0" {
		cas = ""
	}
	switch {
	case old == nil && joins && vivify > -2:
		it.ttl = vivify
	case old == nil && cas != "" && !joins && mode != addMode:
		return "NF"
	case mode == addMode && old != nil, old == nil && (joins || mode == replaceMode):
		return "NS"
	case cas != "" && mode != addMode && (cas != m.cas[key] || !m.fresh[key]):
		return "EX"
	case mode == appendMode:
		it = modelItem{value: old.value + it.value, flags: old.flags, ttl: old.ttl}
	case mode == prependMode:
		it = modelItem{value: it.value + old.value, flags: old.flags, ttl: old.ttl}
	}
	m.put(key, it)
	return "HD"
}

// add returns NF, EX, an error or the number. The exptimes are -2 if they are not given.
func (m *model) add(key string, down bool, delta uint64, cas string, vivify, ttl int) string {
	it := m.items[key]
	switch {
	case it == nil && vivify == -2:
		return "NF"
	case it == nil:
		m.put(key, modelItem{value: "0", ttl: vivify})
		return "0"
	case cas != "" && cas != "0" && (cas != m.cas[key] || !m.fresh[key]):
		return "EX"
	}
	n, err := strconv.ParseUint(append(strings.Fields(it.value), "")[0], 10, 64)
	switch {
	case err != nil:
		return noNumber
	case down:
		n -= min(n, delta)
	default:
		n += delta
	}
	next := *it
	next.value = strconv.FormatUint(n, 10)
	if ttl > -2 {
		next.ttl = ttl
	}
	m.put(key, next)
	return next.value
}

var classic = map[string]string{"HD": "STORED\r\n", "NS": "NOT_STORED\r\n", "EX": "EXISTS\r\n", "NF": "NOT_FOUND\r\n"}

// choose makes n the version of a key, if its last command, which has replied r, has stored it.
func (m *model) choose(key, r string, n int) {
	if n > 0 && m.items[key] != nil && (r == "HD" || r[0] <= '9') {
		m.cas[key], m.fresh[key] = strconv.Itoa(n), true
	}
}

// A program is bytes that say what to do.
type program []byte

// pick returns one of n, 0 when the program is at its end.
func (p *program) pick(n int) int {
	if len(*p) == 0 {
		return 0
	}
	b := (*p)[0]
	*p = (*p)[1:]
	return int(b) % n
}

func (p *program) exptime() int { return exptimes[p.pick(len(exptimes))] }

// maybe returns an exptime and its flag, or in three of four cases -2 and none.
func (p *program) maybe(letter string) (exptime int, flag string) {
	if p.pick(4) > 0 {
		return -2, ""
	}
	exptime = p.exptime()
	return exptime, fmt.Sprintf(" %s%d", letter, exptime)
}

// casOf returns the version that was seen of a key, one that never was, 0, or none.
func (p *program) casOf(m *model, key string) string {
	switch p.pick(4) {
	case 0:
		return "999999999999"
	case 1:
		return m.cas[key]
	case 2:
		return "0"
	}
	return ""
}

// chosen returns a version for E and its flag, or in three of four cases 0 and none.
func (p *program) chosen() (n int, flag string) {
	if p.pick(4) > 0 {
		return 0, ""
	}
	n = 1 + p.pick(9)
	return n, fmt.Sprintf(" E%d", n)
}

// step returns a command and the reply of the model.
func (m *model) step(p *program) (say, want string) {
	op := p.pick(12)
	key := string(rune('a' + p.pick(4)))
	value := []string{"", "7", "18446744073709551615 ", "text\r\n", strings.Repeat("x", 300)}[p.pick(5)]
	it := m.items[key]
	switch op {
	case 0, 1:
		mode := []byte{setMode, addMode, replaceMode, appendMode, prependMode}[p.pick(5)]
		name := map[byte]string{setMode: "set", addMode: "add", replaceMode: "replace", appendMode: "append", prependMode: "prepend"}[mode]
		new := modelItem{value: value, flags: p.pick(3), ttl: p.exptime()}
		want = classic[m.store(mode, key, new, "", -2)]
		say = fmt.Sprintf("%s %s %d %d %d\r\n%s\r\n", name, key, new.flags, new.ttl, len(value), value)
		if p.pick(4) == 0 {
			say, want = strings.Replace(say, "\r\n", " noreply\r\n", 1), ""
		}
	case 2:
		cas := cmpOr(p.casOf(m, key), "5")
		new := modelItem{value: value, ttl: p.exptime()}
		want = classic[m.store(casMode, key, new, cas, -2)]
		say = fmt.Sprintf("cas %s 0 %d %d %s\r\n%s\r\n", key, new.ttl, len(value), cas, value)
	case 3:
		return m.get(p)
	case 4:
		say, want = fmt.Sprintf("delete %s\r\n", key), "NOT_FOUND\r\n"
		if it != nil {
			m.put(key, modelItem{ttl: -1})
			want = "DELETED\r\n"
		}
	case 5:
		down, delta := p.pick(2) == 1, uint64(p.pick(9))
		r := m.add(key, down, delta, "", -2, -2)
		want = r + "\r\n"
		if c, ok := classic[r]; ok {
			want = c
		}
		say = fmt.Sprintf("%s %s %d\r\n", []string{"incr", "decr"}[bit(down)], key, delta)
	case 6:
		ttl := p.exptime()
		say, want = fmt.Sprintf("touch %s %d\r\n", key, ttl), "NOT_FOUND\r\n"
		if it != nil {
			m.touch(key, ttl)
			want = "TOUCHED\r\n"
		}
	case 7, 8:
		return m.metaGet(p, key)
	case 9:
		mode := []byte{setMode, addMode, replaceMode, appendMode, prependMode}[p.pick(5)]
		cas := p.casOf(m, key)
		vivify, n := p.maybe("N")
		new := modelItem{value: value, flags: p.pick(3), ttl: p.exptime()}
		chosen, e := p.chosen()
		say = fmt.Sprintf("ms %s %d M%c F%d T%d%s%s%s\r\n%s\r\n", key, len(value), mode, new.flags, new.ttl, n, casFlag(cas), e, value)
		want = m.store(mode, key, new, cas, vivify)
		m.choose(key, want, chosen)
		want += "\r\n"
	case 10:
		return m.metaDelete(p, key)
	case 11:
		down, delta, cas := p.pick(2) == 1, uint64(p.pick(9)), p.casOf(m, key)
		vivify, n := p.maybe("N")
		ttl, t := p.maybe("T")
		flags := n + t
		if p.pick(2) == 0 {
			flags = t + n
		} else if vivify > -2 && ttl > -2 {
			vivify = ttl
		}
		chosen, e := p.chosen()
		say = fmt.Sprintf("ma %s v M%c D%d%s%s%s\r\n", key, "ID"[bit(down)], delta, flags, casFlag(cas), e)
		want = m.add(key, down, delta, cas, vivify, ttl)
		m.choose(key, want, chosen)
		want += "\r\n"
		if want[0] <= '9' {
			want = fmt.Sprintf("VA %d\r\n%s", len(want)-2, want)
		}
	}
	return say, want
}

func cmpOr(a, b string) string {
	if a == "" {
		return b
	}
	return a
}

func casFlag(cas string) string {
	if cas == "" {
		return ""
	}
	return " C" + cas
}

// get is gets or gats of all keys.
func (m *model) get(p *program) (say, want string) {
	keys := []string{"a", "b", "c", "d"}
	say = "gets"
	ttl := -2
	if p.pick(3) == 0 {
		ttl = p.exptime()
		say = fmt.Sprintf("gats %d", ttl)
	}
	for _, key := range keys {
		say += " " + key
		if it := m.items[key]; it != nil {
			want += fmt.Sprintf("VALUE %s %d %d ~\r\n%s\r\n", key, it.flags, len(it.value), it.value)
			it.read = true
			if ttl > -2 {
				m.touch(key, ttl)
			}
		}
	}
	return say + "\r\n", want + "END\r\n"
}

func (m *model) metaGet(p *program, key string) (say, want string) {
	vivify, n := p.maybe("N")
	recache, r := p.maybe("R")
	ttl, t := p.maybe("T")
	quiet := []string{"", " u"}[bit(p.pick(4) == 0 && t == "")]
	it, wins, judged := m.items[key], false, 0
	if it != nil {
		judged = it.ttl
	}
	if p.pick(2) == 0 {
		r, t = t, r
		if ttl > -2 {
			judged = ttl
		}
	}
	chosen, e := p.chosen()
	cas := p.casOf(m, key)
	has := it != nil && cas != "" && cas == m.cas[key] && m.fresh[key] // the client has the value
	say = fmt.Sprintf("mg %s v f t k h%s%s%s%s%s%s\r\n", key, n, r, t, quiet, e, casFlag(cas))
	switch {
	case it == nil && vivify < 0: // -1 has expired when it is made
		return say, "EN k" + key + "\r\n"
	case it == nil:
		m.put(key, modelItem{ttl: vivify, won: true})
		it, wins = m.items[key], true
		m.choose(key, "HD", chosen)
		has = cas == m.cas[key] && m.fresh[key]
	case !it.won && (it.stale || judged != 0 && recache > max(judged, 0)):
		it.won, wins = true, true // which is no new version
	}
	shown := it.ttl
	if shown == 0 {
		shown = -1
	}
	want = fmt.Sprintf("VA %d f%d t%d k%s h%d", len(it.value), it.flags, shown, key, bit(it.read))
	it.read = it.read || quiet == ""
	for _, flag := range []struct {
		name string
		is   bool
	}{{" Z", it.won && !wins}, {" X", it.stale}, {" W", wins}} {
		if flag.is {
			want += flag.name
		}
	}
	if want += "\r\n"; has {
		want = "HD" + strings.TrimPrefix(want, fmt.Sprintf("VA %d", len(it.value)))
	} else {
		want += it.value + "\r\n"
	}
	if ttl > -2 {
		m.touch(key, ttl)
	}
	return say, want
}

func (m *model) metaDelete(p *program, key string) (say, want string) {
	flags, cas := []string{"", " I", " x", " I x"}[p.pick(4)], p.casOf(m, key)
	ttl, t := p.maybe("T")
	chosen, e := p.chosen()
	say = fmt.Sprintf("md %s%s%s%s%s\r\n", key, flags, t, casFlag(cas), e)
	it := m.items[key]
	switch {
	case it == nil:
		return say, "NF\r\n"
	case cas != "" && (cas != m.cas[key] || !m.fresh[key]):
		return say, "EX\r\n"
	case flags == "":
		m.put(key, modelItem{ttl: -1})
		return say, "HD\r\n"
	}
	next := *it
	if strings.Contains(flags, "x") {
		next.value, next.flags = "", 0
	}
	if strings.Contains(flags, "I") {
		next.stale, next.won = true, false
		if ttl > -2 {
			next.ttl = ttl
		}
	}
	m.put(key, next)
	m.choose(key, "HD", chosen)
	return say, "HD\r\n"
}

var casOfValue = regexp.MustCompile(`(?m)^VALUE (\w) (\d+) (\d+) (\d+)`)

// run carries out a program on the server and the model, a few commands at a time.
func (p program) run(t *testing.T) { synctest.Test(t, p.inBubble) }

func (p program) inBubble(t *testing.T) {
	s := newServer(t)
	time.Sleep(time.Second / 2) // away from the edge of the cache's second
	m := &model{map[string]*modelItem{}, map[string]string{}, map[string]bool{}}
	var history []string
	for len(p) > 0 {
		say, want := "", ""
		for more := 1 + p.pick(maxLookups+3); more > 0; more-- {
			command, reply := m.step(&p)
			say, want = say+command, want+reply
			if command[0] == 'g' {
				break // later commands may name the versions in its reply
			}
		}
		history = append(history, say)
		got := talk(t, s, say)
		for _, v := range casOfValue.FindAllStringSubmatch(got, -1) {
			m.cas[v[1]], m.fresh[v[1]] = v[4], m.items[v[1]] != nil
		}
		if got := casOfValue.ReplaceAllString(got, "VALUE $1 $2 $3 ~"); got != want {
			t.Fatalf("after %q the server said\n%q, want\n%q\nthe model has %v", history[max(len(history)-8, 0):], got, want, slices.Sorted(maps.Keys(m.items)))
		}
	}
}

// FuzzModel reads its input as a program of commands, whose replies must be the model's.
func FuzzModel(f *testing.F) {
	f.Add([]byte{0, 0, 1, 0, 1, 2, 1, 7, 0, 0, 0, 2, 2, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		program(data).run(t)
	})
}

// Ten million commands, and some tens of thousands in short tests.
func TestRandomCommands(t *testing.T) {
	programs := 12_000
	if testing.Short() {
		programs = 60
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range programs {
		data := make(program, 4000)
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		data.run(t)
	}
}
