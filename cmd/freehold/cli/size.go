package cli

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"
)

// A Size is a number of bytes on the command line: "16GiB", "1.5g", "4096".
// K, M, G, T, KiB, MiB, GiB and TiB are powers of 1024; KB, MB, GB and TB are powers of 1000.
type Size int64

func (b *Size) UnmarshalText(text []byte) error {
	s := strings.TrimSpace(string(text))
	binary := s
	if i := len(s) - 1; i > 0 && strings.ContainsRune("kKmMgGtT", rune(s[i])) {
		binary += "iB"
	}
	n, err := humanize.ParseBytes(binary)
	if err != nil || n > math.MaxInt64 {
		return fmt.Errorf("%q is not a size: write bytes, or a number with KiB, MiB, GiB or TiB (powers of 1024) or KB, MB, GB or TB (powers of 1000)", s)
	}
	*b = Size(n)
	return nil
}

// MarshalText returns the size in bytes, which UnmarshalText reads exactly.
func (b Size) MarshalText() ([]byte, error) { return strconv.AppendInt(nil, int64(b), 10), nil }

func (b Size) String() string { return Bytes(int64(b)) }

// Bytes returns n as text with three digits: "12.0 GiB".
func Bytes(n int64) string {
	if n < 0 {
		return "-" + Bytes(-n)
	}
	return humanize.IBytesN(uint64(n), 3)
}

// Plural returns a number with its noun: "1 byte", "2,000 bytes".
func Plural[T int | int64 | uint64](n T, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return humanize.Comma(int64(n)) + " " + noun + "s"
}
