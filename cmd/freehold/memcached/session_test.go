package memcached

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/cache"
)

const (
	testBytes   = 4 << 20
	testMaxItem = 64 << 10
)

// newServer returns a server of an empty cache, which the test closes.
func newServer(t testing.TB) *Server {
	c := cache.New(alloctest.New(t), &cache.Options{MaxBytes: testBytes, Access: true})
	t.Cleanup(c.Close)
	return New(c, Options{
		MaxBytes: testBytes, MaxItem: testMaxItem, MaxConns: 2, Write: 1, Version: "1.6.45", Build: "test",
		Heap: alloctest.New(t), Buffers: LeastBuffers(testMaxItem),
	})
}

// A wire is a connection whose client has sent all that it will, in pieces.
type wire struct {
	pieces []string
	out    bytes.Buffer
	writes int
	most   int    // bytes of one
	before func() // runs before each Write; may be nil
	err    error  // of each Write
}

func (w *wire) Read(p []byte) (int, error) {
	if len(w.pieces) == 0 {
		return 0, io.EOF
	}
	n := copy(p, w.pieces[0])
	if w.pieces[0] = w.pieces[0][n:]; w.pieces[0] == "" {
		w.pieces = w.pieces[1:]
	}
	return n, nil
}

func (w *wire) Write(p []byte) (int, error) {
	w.writes++
	w.most = max(w.most, len(p))
	if w.before != nil {
		w.before()
	}
	n, _ := w.out.Write(p)
	return n, w.err
}

// talk returns the replies of the server.
func talk(t testing.TB, s *Server, pieces ...string) string {
	t.Helper()
	w := &wire{pieces: pieces}
	if err := s.Session(w); err != nil {
		t.Errorf("the session ended with %v", err)
	}
	return w.out.String()
}

// TestWinningKeepsTheCAS: a client that wins an item, and so marks it, does not change its CAS
// number, however large the item is.
func TestWinningKeepsTheCAS(t *testing.T) {
	s := newServer(t)
	for _, bytes := range []int{1, 5000, testMaxItem - 1} {
		talk(t, s, fmt.Sprintf("ms k %d T100\r\n%s\r\n", bytes, strings.Repeat("v", bytes)))
		before := strings.TrimSuffix(talk(t, s, "mg k c\r\n"), "\r\n")
		if got := talk(t, s, "mg k c R200\r\n"); got != before+" W\r\n" {
			t.Errorf("%d bytes: %q, and before %q", bytes, got, before)
		}
		if got := talk(t, s, "mg k c\r\n"); got != before+" Z\r\n" {
			t.Errorf("%d bytes: %q afterwards, and before %q", bytes, got, before)
		}
	}
}

var longKey = strings.Repeat("k", maxKey+1)

// conversations are commands of clients and the replies to them. A ~ in a reply is a version. Each
// begins with an empty cache.
var conversations = []struct{ name, say, want string }{
	{"set and get", "set a 7 0 2\r\nhi\r\nget a b\r\n", "STORED\r\nVALUE a 7 2\r\nhi\r\nEND\r\n"},
	{"an empty value", "set a 0 0 0\r\n\r\nget a\r\n", "STORED\r\nVALUE a 0 0\r\n\r\nEND\r\n"},
	{"a value of line ends", "set a 0 0 4\r\n\r\n\r\n\r\nget a\r\n", "STORED\r\nVALUE a 0 4\r\n\r\n\r\n\r\nEND\r\n"},
	{"a line without a return", "set a 0 0 2\nhi\r\nget a\n", "STORED\r\nVALUE a 0 2\r\nhi\r\nEND\r\n"},
	{"spaces", "  get   a  b \r\n \r\n\r\n", "END\r\n" + badFormat + "\r\n" + badFormat + "\r\n"},
	{"cas", "set a 0 0 1\r\n1\r\ncas a 0 0 1 0\r\n2\r\ncas b 0 0 1 1\r\n2\r\n", "STORED\r\nEXISTS\r\nNOT_FOUND\r\n"},
	{"more keys than a line's words", "set a 0 0 1\r\n1\r\nget " + strings.Repeat("b ", 50) + "a\r\n", "STORED\r\nVALUE a 0 1\r\n1\r\nEND\r\n"},
	{"a key that is too long", "get a " + longKey + "\r\nset " + longKey + " 0 0 1\r\n1\r\nmg " + longKey + "\r\ntouch " + longKey + " 0\r\n",
		strings.Repeat(badFormat+"\r\n", 4)},
	{"a key as long as may be", "set " + longKey[1:] + " 0 0 1\r\n1\r\nget " + longKey[1:] + "\r\nmg " + longKey[1:] + " v\r\ntouch " + longKey[1:] + " 0\r\n",
		"STORED\r\nVALUE " + longKey[1:] + " 0 1\r\n1\r\nEND\r\nVA 1\r\n1\r\nTOUCHED\r\n"},
	{"the longest opaque", "mg a k O" + longKey[:31] + "\r\nmn\r\nset a 0 0 1\r\n1\r\nmg a O" + longKey[:31] + "\r\n", "EN ka O" + longKey[:31] + "\r\nMN\r\nSTORED\r\nHD O" + longKey[:31] + "\r\n"},
	{"the longest line", "mg a" + strings.Repeat(" ", maxLine-len("mg a")) + "\r\n", "EN\r\n"},
	{"a line that is too long, of an mg", "mg a" + strings.Repeat(" ", maxLine+1-len("mg a")) + "\r\n", "CLIENT_ERROR line is too long\r\n"},
	{"the largest item", fmt.Sprintf("set a 0 0 %d\r\n%s\r\n", testMaxItem-1, strings.Repeat("x", testMaxItem-1)), "STORED\r\n"},
	{"an item that is too large by its key", fmt.Sprintf("set a 0 0 %d\r\n%s\r\nset ab 0 0 %d\r\n%s\r\n", testMaxItem, strings.Repeat("x", testMaxItem), testMaxItem-1, strings.Repeat("x", testMaxItem-1)),
		tooLarge + "\r\n" + tooLarge + "\r\n"},
	{"the largest number", "set a 0 0 20\r\n18446744073709551615\r\nincr a 18446744073709551615\r\nincr a 18446744073709551616\r\n", "STORED\r\n18446744073709551614\r\nCLIENT_ERROR invalid numeric delta argument\r\n"},
	{"nothing of a get with such a key", "set a 0 0 1\r\n1\r\nget a " + strings.Repeat("b ", 30) + longKey + "\r\n", "STORED\r\n" + badFormat + "\r\n"},
	{"numbers that are none", "set a x 0 1\r\n1\r\nset a 0 x 1\r\n1\r\nset a -1 0 1\r\n1\r\nset a 4294967296 0 1\r\n1\r\ncas a 0 0 1 x\r\n1\r\n",
		strings.Repeat(badFormat+"\r\n", 5)},
	{"sizes that are none", "set a 0 0 -1\r\nset a 0 0 x\r\nset a 0 0 2147483647\r\nset a 0 0 99999999999999999999\r\nms a\r\nms a S1\r\n",
		strings.Repeat(badFormat+"\r\n", 6)},
	{"a data block that is longer", "set a 0 0 1\r\nxyzz\r\n", "CLIENT_ERROR bad data chunk\r\n" + badFormat + "\r\n"},
	{"a data block with half of its end", "set a 0 0 1\r\nx\ry\r\nmn\r\n", "CLIENT_ERROR bad data chunk\r\n" + badFormat + "\r\nMN\r\n"},
	{"an item that is too large loses the old one", "set a 0 0 1\r\n1\r\nset a 0 0 70000\r\n" + strings.Repeat("x", 70000) + "\r\nget a\r\n",
		"STORED\r\n" + tooLarge + "\r\nEND\r\n"},
	{"an append that is too large", "set a 0 0 1\r\n1\r\nappend a 0 0 70000\r\n" + strings.Repeat("x", 70000) + "\r\nget a\r\n",
		"STORED\r\n" + tooLarge + "\r\nVALUE a 0 1\r\n1\r\nEND\r\n"},
	{"noreply drops errors too", "set a 0 0 1 noreply\r\n1\r\nset a x 0 1 noreply\r\n1\r\nincr a x noreply\r\nadd a 0 0 1 noreply\r\n1\r\nmn\r\n", "MN\r\n"},
	{"a key that is called noreply", "set noreply 0 0 1\r\n1\r\ndelete noreply\r\ndelete noreply noreply\r\nincr noreply noreply\r\nmn\r\n", "STORED\r\nDELETED\r\nMN\r\n"},
	{"incr", "set n 0 0 20\r\n18446744073709551615\r\nincr n 2\r\ndecr n 5\r\nincr n x\r\nincr m 1\r\nset n 0 0 1\r\nx\r\nincr n 1\r\n",
		"STORED\r\n1\r\n0\r\nCLIENT_ERROR invalid numeric delta argument\r\nNOT_FOUND\r\nSTORED\r\n" + noNumber + "\r\n"},
	{"numbers with white space", "set n 0 0 2\r\n9 \r\nincr n 1\r\nset n 0 0 3\r\n 12\r\ndecr n 1\r\nset n 0 0 6\r\n12 abc\r\nma n v\r\nset n 0 0 4\r\n\t+7\n\r\nincr n 1\r\nset n 0 0 5\r\n12abc\r\nincr n 1\r\nset n 0 0 1\r\n \r\nincr n 1\r\nset n 0 0 0\r\n\r\nincr n 1\r\n",
		"STORED\r\n10\r\nSTORED\r\n11\r\nSTORED\r\nVA 2\r\n13\r\nSTORED\r\n8\r\n" + strings.Repeat("STORED\r\n"+noNumber+"\r\n", 3)},
	{"delete with a time", "delete a 0\r\ndelete a 1\r\ndelete a 0 noreply\r\ndelete a 1 noreply\r\ndelete a 0 0\r\n",
		"NOT_FOUND\r\n" + strings.Repeat("CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]\r\n", 2)},
	{"commands that there are not", "GET a\r\nfoo\r\nf\r\nquit\r\nget a\r\n", "ERROR\r\nERROR\r\n" + badFormat + "\r\n"},
	{"commands without their words", "get\r\nset a 0 0\r\ncas a 0 0\r\nincr a\r\ntouch a\r\ngat 0\r\nmg\r\ndelete\r\nflush_all 0 noreply a\r\n", strings.Repeat(badFormat+"\r\n", 9)},
	{"a cas without a version skips its data block", "cas a 0 0 4 \r\nmn\r\n\r\nmn\r\n", badFormat + "\r\nMN\r\n"},
	{"browsers", "GET / HTTP/1.1\r\nget a\r\n", ""},
	{"the binary protocol", "\x80\x00\x00\x00get a\r\n", "CLIENT_ERROR the binary protocol is not supported, only the text and meta commands\r\n"},
	{"a line that never ends", strings.Repeat("x", maxLine+1), "CLIENT_ERROR line is too long\r\n"},
	{"a get that never ends", "get " + strings.Repeat("x ", testMaxItem), "CLIENT_ERROR line is too long\r\n"},
	{"clients that leave in the middle", "set a 0 0 10\r\nabc", ""},
	{"administration", "version\r\nverbosity 1\r\nverbosity x\r\nflush_all x\r\nshutdown\r\nslabs automove 1\r\nslabs automove x\r\nstats nothing\r\nrefresh_certs\r\n",
		"VERSION 1.6.45\r\nOK\r\n" + badFormat + "\r\nCLIENT_ERROR invalid exptime argument\r\nSERVER_ERROR: shutdown not enabled\r\nOK\r\n" + badFormat + "\r\nERROR\r\nERROR\r\n"},
	{"flush_all with noreply in front", "set a 0 0 1\r\n1\r\nflush_all noreply 0\r\nget a\r\nflush_all noreply\r\nget a\r\n", "STORED\r\nCLIENT_ERROR invalid exptime argument\r\nVALUE a 0 1\r\n1\r\nEND\r\nEND\r\n"},
	{"flush_all", "set a 0 0 1\r\n1\r\nflush_all\r\nget a\r\nset a 0 0 1\r\n1\r\nflush_all 0 noreply\r\nget a\r\n", "STORED\r\nOK\r\nEND\r\nSTORED\r\nEND\r\n"},
	{"cache_memlimit", fmt.Sprintf("cache_memlimit %d\r\ncache_memlimit %d\r\n", testBytes>>17, testBytes>>17+1) + "cache_memlimit 8\r\ncache_memlimit 0\r\ncache_memlimit 1000\r\ncache_memlimit x\r\n",
		"OK\r\nMEMLIMIT_ADJUST_FAILED out of bounds\r\nOK\r\nMEMLIMIT_TOO_SMALL cannot set maxbytes to less than an eighth of what it was at first\r\nMEMLIMIT_ADJUST_FAILED out of bounds\r\nERROR\r\n"},
	{"the largest flags", "set a 4294967295 0 1\r\n1\r\nget a\r\n", "STORED\r\nVALUE a 4294967295 1\r\n1\r\nEND\r\n"},
	{"lists of keys", "set a 0 0 1\r\n1\r\nlru_crawler metadump all\r\nstats cachedump 1 1\r\n",
		"STORED\r\nOK\r\nkey=a exp=-1 la=~ cas=~ fetch=no cls=1 size=2 flags=0 \nEND\r\nITEM a [1 b; 0 s]\r\nEND\r\n"},
	{"lists of keys for mg", "lru_crawler mgdump all\r\nms a 1\r\n1\r\nlru_crawler mgdump hash\r\nmd a\r\nms YSBi 1 b\r\n1\r\nlru_crawler mgdump all\r\n",
		"OK\r\nEN\r\nHD\r\nOK\r\nmg a\r\nEN\r\nHD\r\nHD\r\nOK\r\nmg YSBi b\r\nEN\r\n"},
	{"sizes of items", "stats sizes\r\nms a 15\r\n123456789012345\r\nms b 15 E5\r\n123456789012345\r\nms c 16\r\n1234567890123456\r\nstats sizes\r\n", "END\r\nHD\r\nHD\r\nHD\r\nSTAT 32 1\r\nSTAT 64 2\r\nEND\r\n"},
	{"settings without effect", "lru mode flat\r\nlru temp_ttl 61\r\nlru temp_ttl -1\r\nlru tune 20 40 0.2 2.0\r\nlru_crawler enable\r\nlru_crawler tocrawl 5\r\nlru_crawler sleep 5\r\nlru_crawler crawl 1\r\nslabs automove ratio 0.5\r\n", strings.Repeat("OK\r\n", 9)},
	{"settings that are wrong", "lru mode x\r\nlru temp_ttl x\r\nlru tune 20 40\r\nlru_crawler x\r\nlru_crawler x y\r\nslabs x 1\r\nlru_crawler tocrawl x\r\nlru_crawler sleep 1000001\r\nslabs reassign 1 2\r\n",
		strings.Repeat("ERROR\r\n", 6) + badFormat + "\r\nCLIENT_ERROR sleep must be one second or less\r\nCLIENT_ERROR slab reassignment disabled\r\n"},

	{"meta", "ms a 2 T0 F5\r\nhi\r\nmg a v t f s k Oxy\r\nmg a\r\nmg b k Oxy\r\nmd a q\r\nmg a v q\r\nmn\r\n",
		"HD\r\nVA 2 t-1 f5 s2 ka Oxy\r\nhi\r\nHD\r\nEN kb Oxy\r\nMN\r\n"},
	{"what is known of accesses", "ms a 1\r\n1\r\nmg a h l u\r\nme a\r\nmg a h l\r\nmg a h u\r\nms a 1\r\n2\r\nmg a h u\r\ntouch a 0\r\nmg a h\r\nmg b h l u\r\n",
		"HD\r\nHD h0 l0\r\nME a exp=-1 la=~ cas=~ fetch=no cls=1 size=2\r\nHD h0 l0\r\nHD h1\r\nHD\r\nHD h0\r\nTOUCHED\r\nHD h1\r\nEN\r\n"},
	{"lookups in a row", "ms a 1\r\n1\r\nmg a v\r\nget a\r\nmg b\r\ngets b\r\nmg a k Ox q\r\nmg b q\r\nmg a !\r\nget a b\r\nget b\r\nmg a N0\r\nget\r\nmg\r\n" + strings.Repeat("mg a s\r\n", maxLookups+1),
		"HD\r\nVA 1\r\n1\r\nVALUE a 0 1\r\n1\r\nEND\r\nEN\r\nEND\r\nHD ka Ox\r\nCLIENT_ERROR invalid flag\r\nVALUE a 0 1\r\n1\r\nEND\r\nEND\r\nHD\r\n" + badFormat + "\r\n" + badFormat + "\r\n" + strings.Repeat("HD s1\r\n", maxLookups+1)},
	{"lookups of stale items", "ms a 1\r\n1\r\nms b 1\r\n2\r\nmd a I\r\nmg b v\r\nmg a v\r\nmg a v\r\nmg b v\r\n", "HD\r\nHD\r\nHD\r\nVA 1\r\n2\r\nVA 1 X W\r\n1\r\nVA 1 Z X\r\n1\r\nVA 1\r\n2\r\n"},
	{"accesses of keys behind one that a client wins", "ms a 1\r\n1\r\nms b 1\r\n1\r\nmd a I\r\nmg a\r\nmg b h\r\nmg b h\r\n", "HD\r\nHD\r\nHD\r\nHD X W\r\nHD h0\r\nHD h1\r\n"},
	{"accesses of keys behind a large reply", "set a 0 0 40000\r\n" + strings.Repeat("x", 40000) + "\r\nms b 1\r\n1\r\nmg b s\r\nms b 1\r\n1\r\nmg a s v h\r\nmg b h\r\nmg b h\r\n",
		"STORED\r\nHD\r\nHD s1\r\nHD\r\nVA 40000 s40000 h0\r\n" + strings.Repeat("x", 40000) + "\r\nHD h0\r\nHD h1\r\n"},
	{"large replies to lookups", "set a 0 0 40000\r\n" + strings.Repeat("x", 40000) + "\r\n" + strings.Repeat("mg b\r\nmg a v\r\n", 6) + "get b a b a b a b\r\n",
		"STORED\r\n" + strings.Repeat("EN\r\nVA 40000\r\n"+strings.Repeat("x", 40000)+"\r\n", 6) + strings.Repeat("VALUE a 0 40000\r\n"+strings.Repeat("x", 40000)+"\r\n", 3) + "END\r\n"},
	{"a long line of keys with large values", "set a 0 0 40000\r\n" + strings.Repeat("x", 40000) + "\r\nget " + strings.Repeat("b ", 9000) + "a b a\r\nmn\r\n",
		"STORED\r\n" + strings.Repeat("VALUE a 0 40000\r\n"+strings.Repeat("x", 40000)+"\r\n", 2) + "END\r\nMN\r\n"},
	{"an item that append makes as large as may be", fmt.Sprintf("set a 0 0 %d\r\n%s\r\nappend a 0 0 5\r\n12345\r\nprepend a 0 0 1\r\n1\r\nms a 1 MA\r\n1\r\nmg a s\r\n", testMaxItem-6, strings.Repeat("x", testMaxItem-6)),
		"STORED\r\nSTORED\r\n" + tooLarge + "\r\n" + tooLarge + "\r\n" + fmt.Sprintf("HD s%d\r\n", testMaxItem-1)},
	{"append ends the mark of a stale item", "ms a 1\r\n1\r\nmd a I\r\nms a 1 MA\r\n2\r\nmg a v\r\n", "HD\r\nHD\r\nHD\r\nVA 2\r\n12\r\n"},
	{"an exptime that is very late", "set a 0 9223372036854775807 1\r\n1\r\nmg a\r\nset a 0 18446744073709551615 1\r\n1\r\nmg a\r\n", "STORED\r\nHD\r\nSTORED\r\nHD\r\n"},
	{"exptimes that are very early", "set a 0 -9223372037 1\r\n1\r\nmg a\r\nset a 0 -9223372036854775807 1\r\n1\r\nmg a\r\nset a 0 -18446744073709551615 1\r\n1\r\nmg a\r\n", strings.Repeat("STORED\r\nEN\r\n", 3)},
	{"flags that are wrong", "mg a !\r\nmg a v v\r\nmg a Tx\r\nmg a O" + strings.Repeat("o", maxOpaque) + "\r\nms a 1 MZ\r\n1\r\nms a 1 MEE\r\n1\r\nma a MZ\r\nma a Jx\r\nma a Dx\r\nmg a " + strings.Repeat("v ", maxFlags+1) + "\r\n",
		"CLIENT_ERROR invalid flag\r\nCLIENT_ERROR duplicate flag\r\nCLIENT_ERROR bad token in command line format\r\nCLIENT_ERROR opaque token too long\r\nCLIENT_ERROR invalid mode for ms M token\r\nCLIENT_ERROR incorrect length for M token\r\nCLIENT_ERROR invalid mode for ma M token\r\nCLIENT_ERROR invalid numeric initial value\r\nCLIENT_ERROR invalid numeric delta value\r\nCLIENT_ERROR options flags are too long\r\n"},
	{"as many flags as may be", "mg a " + strings.Repeat("v ", maxFlags) + "\r\nmg a b c f h k l q s t u v x O1 T0 N0 R0 C1\r\n", "CLIENT_ERROR duplicate flag\r\nCLIENT_ERROR error decoding key\r\n"},
	{"keys in base64", "ms Zm9v 1 b\r\n1\r\nmg foo v\r\nmg Zm9v b k v\r\nmg Z b\r\nme Zm9v b\r\n",
		"HD\r\nVA 1\r\n1\r\nVA 1 kZm9v b\r\n1\r\nCLIENT_ERROR error decoding key\r\nME Zm9v exp=-1 la=~ cas=~ fetch=yes cls=1 size=4\r\n"},
	{"too large values of keys in base64", "ms foo 1\r\n1\r\nms Zm9v 1\r\n1\r\nms Zm9v 70000 b\r\n" + strings.Repeat("x", 70000) + "\r\nmg foo\r\nmg Zm9v\r\nms Z 70000 b\r\n" + strings.Repeat("x", 70000) + "\r\nmn\r\n",
		"HD\r\nHD\r\n" + tooLarge + "\r\nEN\r\nHD\r\nCLIENT_ERROR error decoding key\r\nMN\r\n"},
	{"one client wins a missing item", "mg a v N30 t\r\nmg a v N30\r\nms a 1\r\n1\r\nmg a v N30\r\n", "VA 0 t30 W\r\n\r\nVA 0 Z\r\n\r\nHD\r\nVA 1\r\n1\r\n"},
	{"one client wins an item that expires soon", "ms a 1 T100\r\n1\r\nmg a R100\r\nmg a R101\r\nmg a R101\r\nmg a\r\n", "HD\r\nHD\r\nHD W\r\nHD Z\r\nHD Z\r\n"},
	{"flags T and R in their order", "ms a 1 T100\r\n1\r\nmg a T10 R30 t\r\nms a 1 T10\r\n1\r\nmg a T100 R30 t\r\nms a 1 T100\r\n1\r\nmg a R30 T10 t\r\nms a 1 T10\r\n1\r\nmg a R30 T100 t\r\n",
		"HD\r\nHD t10 W\r\nHD\r\nHD t100\r\nHD\r\nHD t10\r\nHD\r\nHD t100 W\r\n"},
	{"one client wins a stale item", "ms a 1\r\n1\r\nmd a I T30\r\nmg a v t\r\nmg a v\r\nmd a I\r\nmg a\r\nms a 1\r\n2\r\nmg a v\r\n",
		"HD\r\nHD\r\nVA 1 t30 X W\r\n1\r\nVA 1 Z X\r\n1\r\nHD\r\nHD X W\r\nHD\r\nVA 1\r\n2\r\n"},
	{"a value that is older is stored as stale", "ms a 1 T90\r\n1\r\nms a 1 C0\r\n2\r\nms a 1 I C0\r\n2\r\nms a 1 I C1 T7\r\n3\r\nmg a v t\r\n", "HD\r\nEX\r\nEX\r\nHD\r\nVA 1 t90 X W\r\n3\r\n"},
	{"an older value is stored as stale behind a client that has won", "ms a 1\r\n1\r\nmd a I\r\nmg a\r\nms a 1 I C1\r\n3\r\nmg a v\r\n", "HD\r\nHD\r\nHD X W\r\nHD\r\nVA 1 Z X\r\n3\r\n"},
	{"flags of a reply to ms are those of what is stored", "ms a 2 T90 F5 s t f\r\nab\r\nms a 1 MA T7 F9 s t f\r\nc\r\nms a 1 MP T7 F9 s t f\r\nc\r\nms a 1 I C1 T7 F9 s t f\r\n3\r\nms b 3 MA N30 T7 F9 s t f\r\nabc\r\nmg b s t f\r\n",
		"HD s2 t90 f5\r\nHD s3 t90 f5\r\nHD s4 t90 f5\r\nHD s1 t90 f9\r\nHD s3 t30 f9\r\nHD s3 t30 f9\r\n"},
	{"the value alone is deleted", "ms a 1 F3\r\n1\r\nmd a x\r\nmg a v f\r\n", "HD\r\nHD\r\nVA 0 f0\r\n\r\n"},
	{"versions that clients choose", "ms a 2 E7 c s\r\nab\r\nmg a c v\r\nmg a c v E9 N5\r\nms a 1 C8 E9\r\nx\r\nms a 1 C7 E9 MA c s\r\nc\r\nmg a v c\r\ncas a 5 0 1 9\r\nd\r\nget a\r\nms a 1 C9\r\nx\r\n",
		"HD c7 s2\r\nVA 2 c7\r\nab\r\nVA 2 c7\r\nab\r\nEX\r\nHD c9 s3\r\nVA 3 c9\r\nabc\r\nSTORED\r\nVALUE a 5 1\r\nd\r\nEND\r\nEX\r\n"},
	{"versions that clients choose for other writes", "mg a N0 E5 c v\r\nmg a c v\r\nma n N0 J7 E5 c v\r\nma n C5 E6 c v\r\nma n C5\r\nmd n C6 I E8\r\nmg n c v\r\nmg n c v\r\nmd n C8 x E9\r\nmg n c v s\r\nms n 1 E0 C9\r\n1\r\nms n 1 C9\r\n1\r\n",
		"VA 0 c5 W\r\n\r\nVA 0 c5 Z\r\n\r\nVA 1 c5\r\n7\r\nVA 1 c6\r\n8\r\nEX\r\nHD\r\nVA 1 c8 X W\r\n8\r\nVA 1 c8 Z X\r\n8\r\nHD\r\nVA 0 c9 s0 Z X\r\n\r\nHD\r\nEX\r\n"},
	{"a chosen version beside the largest value", fmt.Sprintf("ms a %d E5\r\n%[2]s\r\nmg a s c\r\nmd a I E6\r\nmg a s c u\r\nms a 0 MA E7\r\n\r\nmg a s c\r\nms b 0 E8\r\n\r\nmg b s c\r\n", testMaxItem-1, strings.Repeat("x", testMaxItem-1)),
		fmt.Sprintf("HD\r\nHD s%d c5\r\nHD\r\nHD s%[1]d c6 X W\r\nHD\r\nHD s%[1]d c7\r\nHD\r\nHD s0 c8\r\n", testMaxItem-1)},
	{"a value that the client has", "ms a 1 E7\r\n1\r\nmg a v c C7\r\nmg a v c C8\r\nmg a v T9 t C7\r\nma n N0 E5 v\r\nma n C5 E5 v\r\n", "HD\r\nHD c7\r\nVA 1 c7\r\n1\r\nHD t9\r\nVA 1\r\n0\r\nVA 1\r\n1\r\n"},
	{"modes of ms", "ms a 1 MR\r\n1\r\nms a 1 MA\r\n1\r\nms a 1 MA N0\r\n1\r\nms a 1 ME\r\n2\r\nms a 1 MP\r\n0\r\nms b 1 C1\r\n1\r\nms a 1 c C1\r\n9\r\nmg a v\r\n",
		"NS\r\nNS\r\nHD\r\nNS\r\nHD\r\nNF\r\nEX c0\r\nVA 2\r\n01\r\n"},
	{"quiet commands reply to what the client does not expect", "md a q\r\nma a q\r\nms a 1 q MR\r\n1\r\nma a q v N0 J5\r\nma a q v\r\nmg a v\r\nmn\r\n",
		"NF\r\nNF\r\nNS\r\nVA 1\r\n6\r\nMN\r\n"},
	{"ma", "ma a\r\nma a N0 J5 v\r\nma a D2 v t\r\nma a MD D100 v T60 t\r\nma a q\r\nma a C1\r\nms a 1\r\nx\r\nma a\r\n",
		"NF\r\nVA 1\r\n5\r\nVA 1 t-1\r\n7\r\nVA 1 t60\r\n0\r\nEX\r\nHD\r\n" + noNumber + "\r\n"},
	{"flags N, T and t of ma in their order", "ma a N0 T60\r\nmg a t\r\nma b T60 N30\r\nmg b t\r\nma b t T10\r\nma b T20 t\r\n", "HD\r\nHD t60\r\nHD\r\nHD t30\r\nHD t30\r\nHD t20\r\n"},
}

// versions and times are hidden, since they differ from run to run.
var versions = regexp.MustCompile(`(cas|la)=\d+`)

func TestConversations(t *testing.T) {
	for _, tt := range conversations {
		t.Run(tt.name, func(t *testing.T) {
			got := versions.ReplaceAllString(talk(t, newServer(t), tt.say), "$1=~")
			if got != tt.want {
				t.Errorf("the server said\n%q, want\n%q", got, tt.want)
			}
		})
	}
}

// The pieces in which a command arrives make no difference.
func TestConversationsByteByByte(t *testing.T) {
	for _, tt := range conversations {
		got := versions.ReplaceAllString(talk(t, newServer(t), strings.Split(tt.say, "")...), "$1=~")
		if got != tt.want {
			t.Errorf("%s: the server said\n%q, want\n%q", tt.name, got, tt.want)
		}
	}
}

// All commands of a read are answered by one write.
func TestBatch(t *testing.T) {
	w := &wire{pieces: []string{strings.Repeat("mg a v\r\nset a 0 0 1\r\n1\r\n", 100), "mn\r\n"}}
	newServer(t).Session(w)
	if w.writes != 2 {
		t.Errorf("%d writes for two reads", w.writes)
	}
	if n := strings.Count(w.out.String(), "STORED"); n != 100 {
		t.Errorf("%d of 100 sets were stored", n)
	}
}

// A session's own buffers have bounds, and all else is granted: whatever clients promise, and
// whatever replies they want.
func TestMemoryOfASession(t *testing.T) {
	s := newServer(t)
	for _, say := range []string{
		"set a 0 0 65000\r\n",
		"set a 0 0 65001\r\n" + strings.Repeat("x", bufferBytes),
		"set a 0 0 2000000000\r\n" + strings.Repeat("x", 100000),
		"set a 0 0 60000\r\n" + strings.Repeat("x", 60000) + "\r\n" + strings.Repeat("get a\r\n", 100),
		"get " + strings.Repeat("a ", 100) + "\r\n",
		"set a 0 0 15500\r\n" + strings.Repeat("x", 15500) + "\r\n" + strings.Repeat("get a\r\nmg b\r\n", 100),
		"get " + strings.Repeat("b ", 10000) + "a a a" + "\r\n" + strings.Repeat("gat 0 a\r\nmg a v\r\nmg a v T0\r\n", 100),
		"set a 0 0 10000\r\n" + strings.Repeat("x", 10000) + "\r\n" + strings.Repeat("append a 0 0 10000 noreply\r\n"+strings.Repeat("y", 10000)+"\r\n", 6),
		"set a 0 0 10000\r\n" + strings.Repeat("x", 10000) + "\r\n" + strings.Repeat("get a\r\n", 100) + strings.Repeat("mg a v T0\r\n", 100),
		strings.Repeat("stats\r\n", 2000),
		strings.Repeat("me a\r\n", 3000),
		strings.Repeat("ms a 1 k f s t O123 c\r\n1\r\n", 600),
		strings.Repeat("stats settings\r\nx\r\n", 900),
	} {
		w := &wire{pieces: []string{say}}
		se := &session{Server: s, conn: w}
		w.before = func() {
			if cap(se.out) > max(outBytes, cap(se.outBlock)) {
				t.Errorf("%.20q…: replies outside of the session's buffers", say)
			}
		}
		for se.err == nil {
			se.fill()
			se.check(t)
			se.batch()
			se.check(t)
			se.flush()
		}
		se.giveBack()
		s.spares.free(s.options.Heap)
		if w.most > testMaxItem+replyHead {
			t.Errorf("%.20q…: a write of %d bytes", say, w.most)
		}
		if s.grants.used > 0 || len(s.grants.held) > 0 || se.grant != nil {
			t.Errorf("%.20q…: %d bytes are granted to a session that has ended", say, s.grants.used)
		}
	}
}

// check verifies the bounds of a session's memory.
func (s *session) check(t *testing.T) {
	t.Helper()
	granted := 0
	for _, b := range [][]byte{s.inBlock, s.outBlock} {
		granted += len(b)
	}
	if s.workspace == nil {
		return
	}
	if len(s.memory) > ownBytes || cap(s.scratch) > 2*bufferBytes || cap(s.out) > max(outBytes, cap(s.outBlock)) {
		t.Errorf("buffers of %d, %d and %d bytes", len(s.memory), cap(s.scratch), cap(s.out))
	}
	if s.from == s.to && s.inBlock != nil {
		t.Error("a command's block stays when it is carried out")
	}
	if granted > 0 && (s.grant == nil || granted > s.grant.bytes) || granted == 0 && s.grant != nil {
		t.Errorf("%d bytes, and the grant is %+v", granted, s.grant)
	}
	if s.grants.used > s.grants.limit {
		t.Errorf("%d bytes are granted, of %d", s.grants.used, s.grants.limit)
	}
}

// An error of the connection is the session's, even if the client had said quit or was refused.
func TestErrorsOfASession(t *testing.T) {
	for _, say := range []string{"mn\r\n", "mn\r\nquit\r\n", "mn\r\nGET / HTTP/1.1\r\n"} {
		if err := newServer(t).Session(&wire{pieces: []string{say}, err: io.ErrClosedPipe}); err != io.ErrClosedPipe {
			t.Errorf("%q: %v", say, err)
		}
	}
}

// A session frees each block that it takes, whatever comes after the command that needs it.
func TestBlocksAreFreed(t *testing.T) {
	longest := fmt.Sprint("set k 0 0 ", testMaxItem-1)
	longest += strings.Repeat(" ", maxLine-len(longest)) + "\r\n"
	x := strings.Repeat("x", testMaxItem-1)
	for name, tt := range map[string]struct {
		maxItem int
		say     []string
	}{
		"the largest set behind a line of keys":               {testMaxItem, []string{"get " + strings.Repeat("b ", bufferBytes/2), "\r\n" + longest + x[:20000], x[20000:] + "\r\n"}},
		"an append for which Update calls its function twice": {testBytes / 2, []string{"set k 0 0 1000000\r\n" + strings.Repeat("x", 1000000) + "\r\n", "append k 0 0 100000\r\n" + strings.Repeat("x", 100000) + "\r\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			s.options.MaxItem, s.grants.limit = tt.maxItem, LeastBuffers(tt.maxItem)
			s.options.Heap = alloctest.New(t)
			if got := strings.TrimPrefix(talk(t, s, tt.say...), "END\r\n"); strings.Trim(got, "STORED\r\n") != "" || got == "" {
				t.Errorf("%q", got)
			}
			if used, _, _ := s.grants.figures(); used != 0 {
				t.Errorf("%d bytes are granted", used)
			}
		})
	}
}

// A client that waits in the middle of a command holds no large buffer once it goes on.
func TestBuffersShrink(t *testing.T) {
	s := newServer(t)
	se := &session{Server: s, conn: &wire{pieces: []string{"set a 0 0 60000\r\n" + strings.Repeat("x", 60000) + "\r\n", "append a 0 0 1\r\nx\r\n", "get a\r\n", "mn\r\n"}}}
	se.run()
	se.check(t)
	if se.grant != nil {
		t.Errorf("%d bytes stay granted", se.grant.bytes)
	}
	s.spares.free(s.options.Heap)
}

func TestSteadySessionAllocatesNothing(t *testing.T) {
	s := newServer(t)
	s.cache = cache.New(freehold.Pages(), &cache.Options{MaxBytes: testBytes, Access: true}) // which makes no copies
	defer s.cache.Close()
	w := &wire{}
	se := &session{Server: s, conn: w}
	batch := strings.Repeat("set a 5 0 2\r\nhi\r\nget a b\r\nmg a v t f\r\nms a 2 T9\r\nho\r\nset n 0 0 1\r\n1\r\nincr n 1\r\nma n v\r\nappend a 0 0 1\r\nx\r\ndelete a\r\ntouch n 9\r\n", 10)
	pieces := []string{batch}
	n := testing.AllocsPerRun(100, func() {
		w.pieces = pieces[:1]
		pieces[0] = batch
		w.out.Reset()
		se.fill()
		se.batch()
		se.flush()
	})
	se.giveBack()
	s.spares.free(s.options.Heap)
	if n > 0 {
		t.Errorf("%v allocations a batch", n)
	}
}

// FuzzSession sends any bytes. The server must neither panic nor hold more than its limits allow.
func FuzzSession(f *testing.F) {
	for _, c := range conversations {
		f.Add([]byte(c.say))
	}
	s := newServer(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		se := &session{Server: s, conn: &wire{pieces: []string{string(data)}}}
		for se.err == nil {
			se.fill()
			se.batch()
			se.check(t)
			se.flush()
		}
		se.giveBack()
		s.spares.free(s.options.Heap)
	})
}

// CAS numbers tell items apart, not only the states of one.
func TestVersionsDiffer(t *testing.T) {
	s := newServer(t)
	seen := map[string]bool{}
	for i := range 100 {
		key := "key" + strconv.Itoa(i)
		got := talk(t, s, "ms "+key+" 1 c\r\n1\r\n")
		if seen[got] {
			t.Fatalf("%q again, for %s", got, key)
		}
		seen[got] = true
	}
}

// The bound goes from an eighth of the first one to eight times as much.
func TestMemLimits(t *testing.T) {
	s := newServer(t)
	s.options.MaxBytes = 16 << 20
	s.cache = cache.New(freehold.Pages(), &cache.Options{MaxBytes: 16 << 20})
	defer s.cache.Close()
	for mib, want := range map[int]string{1: "MEMLIMIT_TOO_SMALL", 2: "OK", 128: "OK", 129: "MEMLIMIT_ADJUST_FAILED"} {
		if got := talk(t, s, fmt.Sprintf("cache_memlimit %d\r\n", mib)); !strings.HasPrefix(got, want) {
			t.Errorf("%d MiB: %q, want %s", mib, got, want)
		}
	}
}
