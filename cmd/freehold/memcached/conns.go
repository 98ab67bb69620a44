// Connections, as stats conns lists them.

package memcached

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"time"
)

// connections is stats conns.
func (s *session) connections() {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*session, 0, len(s.sessions))
	for se := range s.sessions {
		if _, ok := se.conn.(*deadlined); ok {
			all = append(all, se)
		}
	}
	slices.SortFunc(all, func(a, b *session) int { return cmp.Compare(a.id, b.id) })
	for _, se := range all {
		d := se.conn.(*deadlined)
		state := "conn_read"
		if se == s {
			state = "conn_parse_cmd"
		}
		for _, stat := range [][2]string{
			{"addr", addressOf(d.RemoteAddr())}, {"listen_addr", addressOf(d.LocalAddr())}, {"state", state},
			{"secs_since_last_cmd", fmt.Sprint((time.Now().UnixNano() - d.wrote.Load()) / int64(time.Second))},
		} {
			s.statText(fmt.Sprint(se.id, ":", stat[0]), stat[1])
		}
	}
}

// addressOf returns an address as memcached writes it, such as tcp:127.0.0.1:11211.
func addressOf(a net.Addr) string { return a.Network() + ":" + a.String() }
