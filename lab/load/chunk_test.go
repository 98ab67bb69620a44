package load

import (
	"strings"
	"testing"
)

func TestChunkFillAndCheck(t *testing.T) {
	for _, size := range []int{16, 17, 23, 24, 100, pageBytes - 1, pageBytes, pageBytes + 1, pageBytes + 7, pageBytes + 15, pageBytes + 16, 10*pageBytes + 3} {
		c := chunk{b: make([]byte, size), stamp: 7}
		c.fill()
		if err := c.check(); err != nil {
			t.Fatalf("size %d, untouched: %v", size, err)
		}
		for at := 0; at < size; at += pageBytes {
			// Somewhere in each page there are bytes that matter.
			page, found := c.b[at:min(at+pageBytes, size)], false
			for i := range page {
				page[i] ^= 0xff
				if c.check() != nil {
					found = true
				}
				page[i] ^= 0xff
			}
			if !found {
				t.Errorf("size %d: nothing in the page at %d is checked", size, at)
			}
		}
		for _, at := range []int{0, size - 1} {
			c.b[at]++
			if err := c.check(); err == nil || !strings.Contains(err.Error(), "memory corrupted") {
				t.Errorf("size %d: byte %d changed, check said %v", size, at, err)
			}
			c.b[at]--
		}
	}
}
