package memcached

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// authenticating returns a server of one user, me, with the password "pass word".
func authenticating(t *testing.T) *Server {
	s := newServer(t)
	s.options.Admits = func(user, password []byte) bool {
		return string(user) == "me" && string(password) == "pass word"
	}
	return s
}

const (
	admitted = "set x 0 0 12\r\nme pass word\r\n"
	strange  = "CLIENT_ERROR unauthenticated\r\n"
	wrong    = "CLIENT_ERROR authentication failure\r\n"
)

// Clients of a server with users, in one piece and byte by byte.
func TestAuthentication(t *testing.T) {
	for _, tt := range []struct{ name, say, want string }{
		{"each command is refused", "get a\r\nmg a v\r\nms a 1\r\nstats\r\nversion\r\nwatch\r\nshutdown\r\nrefresh_certs\r\nset\r\nset a 0 0 x\r\n", strings.Repeat(strange, 10)},
		{"all are served afterwards", "get a\r\n" + admitted + "set a 0 0 1\r\n1\r\nget a\r\nset x 0 0 3\r\nm m\r\n", strange + "STORED\r\nSTORED\r\nVALUE a 0 1\r\n1\r\nEND\r\nSTORED\r\n"},
		{"no reply stores the token", admitted + "get x\r\n", "STORED\r\nEND\r\n"},
		{"wrong tokens", "set x 0 0 7\r\nme pass\r\nset x 0 0 2\r\nme\r\nset x 0 0 2\r\nme pass word\r\n", wrong + "CLIENT_ERROR bad authentication token format\r\nCLIENT_ERROR bad command line termination\r\n" + strange},
		{"a token that is too long is not awaited", "set x 0 0 2147483646\r\n" + admitted, "CLIENT_ERROR auth token too long\r\nSTORED\r\n"},
		{"quit", "quit\r\n" + admitted, ""},
		{"the binary protocol", "\x80" + admitted, "CLIENT_ERROR the binary protocol is not supported, only the text and meta commands\r\n"},
		{"a long line of keys", "get " + strings.Repeat("k ", maxLine) + "\r\n" + admitted, "CLIENT_ERROR line is too long\r\n"},
		{"guesses", strings.Repeat("set x 0 0 4\r\nme x\r\n", maxFailures+1) + admitted, strings.Repeat(wrong, maxFailures+1)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := talk(t, authenticating(t), tt.say); got != tt.want {
				t.Errorf("the server said\n%q, want\n%q", got, tt.want)
			}
			if got := talk(t, authenticating(t), strings.SplitAfter(tt.say, "")...); got != tt.want {
				t.Errorf("byte by byte the server said\n%q, want\n%q", got, tt.want)
			}
		})
	}
}

func TestStatsOfAuthentication(t *testing.T) {
	s := authenticating(t)
	talk(t, s, "set x 0 0 4\r\nme x\r\n"+admitted)
	got := talk(t, s, admitted+"stats\r\nstats settings\r\n")
	for _, want := range []string{"auth_cmds 3", "auth_errors 1", "auth_enabled_ascii yes", "shutdown_command no"} {
		if !strings.Contains(got, "STAT "+want+"\r\n") {
			t.Errorf("no %q in %q", want, got)
		}
	}
}

// The commands that end the server, and that read its files again.
func TestStopAndReload(t *testing.T) {
	s, stops, reloads := newServer(t), 0, 0
	var failure error
	s.options.Stop = func() { stops++ }
	s.options.Reload = func() error { reloads++; return failure }
	for _, tt := range []struct {
		say, want string
		failure   error
		stops     int
	}{
		{"shutdown now\r\nmn\r\n", "CLIENT_ERROR invalid shutdown mode\r\nMN\r\n", nil, 0},
		{"shutdown\r\nmn\r\n", "", nil, 1},
		{"shutdown graceful\r\nmn\r\n", "", nil, 2},
		{"refresh_certs\r\n", "OK\r\n", nil, 2},
		{"refresh_certs\r\n", "SERVER_ERROR files were not reloaded; the server's log says why\r\n", errors.New("no file"), 2},
	} {
		failure = tt.failure
		if got := talk(t, s, tt.say); got != tt.want || stops != tt.stops {
			t.Errorf("%q: %q and %d stops, want %q and %d", tt.say, got, stops, tt.want, tt.stops)
		}
	}
	if got := talk(t, s, "stats\r\n"); reloads != 2 || !strings.Contains(got, "STAT time_since_server_cert_refresh 0\r\n") {
		t.Error(fmt.Sprint(reloads, " reloads, ", got))
	}
}
