package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/dustin/go-humanize"
)

// A byteSize is a number of bytes on the command line: "16GiB", "1.5g", "4096".
// K, M, G and T are powers of 1024, as KiB and so on are; KB, MB, GB and TB are
// powers of 1000.
type byteSize int64

func (b *byteSize) UnmarshalText(text []byte) error {
	s := strings.TrimSpace(string(text))
	if negative.MatchString(s) {
		return fmt.Errorf("%s is negative: a size is 0 or more", s)
	}
	binary := s
	if i := len(s) - 1; i > 0 && strings.ContainsRune("kKmMgGtT", rune(s[i])) {
		binary += "iB"
	}
	n, err := humanize.ParseBytes(binary)
	if err != nil || n > math.MaxInt64 {
		return fmt.Errorf("%q is no size: write bytes, or a number with KiB, MiB, GiB or TiB (powers of 1024) or KB, MB, GB or TB (of 1000)", s)
	}
	*b = byteSize(n)
	return nil
}

func (b byteSize) String() string { return sizeText(int64(b)) }

// sizeText writes bytes with three digits: "12.0 GiB".
func sizeText(n int64) string {
	if n < 0 {
		return "-" + sizeText(-n)
	}
	return humanize.IBytesN(uint64(n), 3)
}
