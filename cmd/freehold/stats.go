package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unicode/utf16"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"github.com/freehold-go/freehold/track/web"
)

// statsCommand shows the memory of a process that serves the page of package track/web.
type statsCommand struct {
	URL      string        `arg:"" help:"Address of the page: a port of this machine, such as 6060, host:port, or http://host:6060/debug/freehold."`
	Interval time.Duration `short:"i" default:"1s" help:"Time between updates."`
	Once     bool          `help:"Print once, also on a terminal."`
	JSON     bool          `name:"json" help:"Print once, as JSON."`
}

func (statsCommand) Help() string {
	return examples(
		"freehold stats 6060                                     # on this machine, until interrupted",
		"freehold stats --json http://host:6060/debug/freehold",
	)
}

// Bounds of an answer. Elements of its lists may take a few hundred times the memory of their bytes
// when they are decoded.
const (
	longestAnswer = 4 << 20 // bytes
	longestHeader = 64 << 10
	mostElements  = 1 << 14 // of its lists
	mostNested    = 16
	slowestAnswer = 10 * time.Second
)

// address returns the URL of the page. The path may be missing, and so may the host, which is then
// this machine.
func (c *statsCommand) address() (*url.URL, error) {
	text := c.URL
	if _, err := strconv.ParseUint(text, 10, 16); err == nil {
		text = ":" + text
	}
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Hostname() == "" && u.Port() == "":
		return nil, cli.Usagef("%q is no URL: write a port, host:port or http://host:port/debug/freehold", c.URL)
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, cli.Usagef("%q: only http and https URLs can be read", c.URL)
	case u.Hostname() == "":
		u.Host = "localhost:" + u.Port()
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/debug/freehold"
	}
	query := u.Query()
	query.Set("format", "json")
	u.RawQuery = query.Encode()
	return u, nil
}

func (c *statsCommand) Run(ctx context.Context, s cli.Streams) error {
	u, err := c.address()
	if err != nil {
		return err
	}
	if c.Interval <= 0 {
		return cli.Usagef("--interval %v: it must be longer than 0", c.Interval)
	}
	snapshot, body, err := fetch(ctx, u)
	switch {
	case err != nil:
		return err
	case c.JSON:
		var compact bytes.Buffer
		_ = json.Compact(&compact, body) // no error: body was decoded before
		_, err = io.WriteString(s.Out, escaped(compact.String())+"\n")
		return err
	case c.Once || !cli.IsTerminal(s.Out):
		_, err = io.WriteString(s.Out, snapshot.Text(nil, 0))
		return err
	}
	return c.watch(ctx, u, snapshot, s.Out)
}

// watch redraws a terminal until the user ends ctx.
func (c *statsCommand) watch(ctx context.Context, u *url.URL, snapshot *web.Snapshot, terminal io.Writer) error {
	tick := time.NewTicker(c.Interval)
	defer tick.Stop()
	var before *web.Snapshot
	for start := "\x1b[2J\x1b[H"; ; start = "\x1b[H" {
		width, height := cli.TerminalSize(terminal)
		if _, err := io.WriteString(terminal, start+frame(snapshot.Text(before, width-1), width, height)); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		before = snapshot
		var err error
		if snapshot, _, err = fetch(ctx, u); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("the process has ended, or answers no more: %w", err)
		}
	}
}

// frame returns text in a form that replaces the text on a terminal: cut to its size, with the
// rest of each line erased.
func frame(text string, width, height int) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if height > 1 && len(lines) >= height {
		lines = append(lines[:height-2:height-2], fmt.Sprintf("... %d more lines; --once prints all", len(lines)-height+2))
	}
	for i, line := range lines {
		lines[i] = cli.Cut(line, width-1, "…")
	}
	return strings.Join(lines, "\x1b[K\n") + "\x1b[K\n\x1b[J"
}

// fetch returns the snapshot that a page serves, and its JSON.
func fetch(ctx context.Context, u *url.URL) (_ *web.Snapshot, _ []byte, err error) {
	defer func() {
		if err != nil {
			err = escapedError{err}
		}
	}()
	shown := *u
	shown.RawQuery = ""
	where := shown.Redacted()
	ctx, cancel := context.WithTimeoutCause(ctx, slowestAnswer, fmt.Errorf("no answer in %v", slowestAnswer))
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, nil, cli.Usagef("%q is no URL: %w", where, err)
	}
	answer, err := client.Do(request)
	if err != nil {
		var wrapped *url.Error // its text would repeat the URL
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		if errors.Is(err, syscall.ECONNREFUSED) {
			return nil, nil, fmt.Errorf("%s: nothing listens there: %w", where, err)
		}
		return nil, nil, fmt.Errorf("%s: %w", where, why(ctx, err))
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, nil, fmt.Errorf("%s: %s; %s", where, answer.Status, mountIt)
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, longestAnswer+1))
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", where, why(ctx, err))
	}
	if len(body) > longestAnswer {
		return nil, nil, fmt.Errorf("%s: the answer is longer than %s, which is no freehold page's", where, web.Size(longestAnswer))
	}
	if !bounded(body) {
		return nil, nil, fmt.Errorf("%s: the answer's lists have more than %d elements, or nest deeper than %d, which is no freehold page's", where, mostElements, mostNested)
	}
	var s web.Snapshot
	if err := json.Unmarshal(body, &s); err != nil || !strings.HasPrefix(s.Format, "freehold/") {
		return nil, nil, fmt.Errorf("%s is no freehold page; %s", where, mountIt)
	}
	if s.Format != web.Format {
		return nil, nil, fmt.Errorf("%s has the format %q, and this command reads %q: use the freehold command of the program's version", where, s.Format, web.Format)
	}
	return &s, body, nil
}

const mountIt = "a program has one at /debug/freehold after http.Handle(\"/debug/freehold\", web.Handler())"

// why returns the cause of a context that is done, and err otherwise.
func why(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// client reads the answer of an untrusted server.
var client = func() *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxResponseHeaderBytes = longestHeader
	return &http.Client{Transport: transport}
}()

// bounded reports whether a JSON text keeps to mostElements and mostNested.
func bounded(body []byte) bool {
	var open [mostNested + 1]byte // the brackets around body[i]
	elements, nested, inString := 0, 0, false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case inString:
			if c == '\\' {
				i++
			}
			inString = c != '"'
		case c == '"':
			inString = true
		case c == '[' || c == '{':
			if nested++; nested > mostNested {
				return false
			}
			open[nested] = c
		case c == ']' || c == '}':
			nested = max(nested-1, 0)
		case c == ',' && open[nested] == '[':
			if elements++; elements > mostElements {
				return false
			}
		}
	}
	return true
}

// escaped returns text with JSON's escapes for unprintable characters, which could change a
// terminal.
func escaped(text string) string {
	var b strings.Builder
	for _, r := range text {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}

// escapedError is an error whose text may have parts of an answer.
type escapedError struct{ error }

func (e escapedError) Error() string { return escaped(e.error.Error()) }

func (e escapedError) Unwrap() error { return e.error }
