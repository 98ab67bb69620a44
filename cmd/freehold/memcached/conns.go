// Connections, as stats conns lists them.

package memcached

import (
	"cmp"
	"net"
	"slices"
	"strconv"
	"time"
)

// connections is stats conns.
func (s *session) connections() {
	all := s.clients()
	slices.SortFunc(all, func(a, b *session) int { return cmp.Compare(a.id, b.id) })
	for _, se := range all {
		d := se.conn.(*deadlined)
		state := "conn_read"
		if se == s {
			state = "conn_parse_cmd"
		}
		s.connection(se.id, "addr", d.remote)
		s.connection(se.id, "listen_addr", d.local)
		s.connection(se.id, "state", state)
		s.connection(se.id, "secs_since_last_cmd", "")
		s.out = strconv.AppendInt(s.out, (time.Now().UnixNano()-d.wrote.Load())/int64(time.Second), 10)
		s.reply("")
		s.spill() // without the server's lock
	}
}

// connection appends a line of stats conns, and leaves it open if value is empty.
func (s *session) connection(id uint64, name, value string) {
	s.out = append(strconv.AppendUint(append(s.out, "STAT "...), id, 10), ':')
	s.out = append(append(s.out, name...), ' ')
	if value != "" {
		s.reply(value)
	}
}

// clients returns the sessions with a network connection.
func (s *Server) clients() (all []*session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for se := range s.sessions {
		if _, ok := se.conn.(*deadlined); ok {
			all = append(all, se)
		}
	}
	return all
}

// addressOf returns an address as memcached writes it, such as tcp:127.0.0.1:11211.
func addressOf(a net.Addr) string { return a.Network() + ":" + a.String() }
