// Size: the value of -S.

package gnu

import (
	"fmt"
	"math"
	"strconv"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"github.com/freehold-go/freehold/extsort"
	"github.com/freehold-go/freehold/internal/sysmem"
)

// A Size is the value of -S: a number of KiB, or a number with a unit, as in GNU sort.
type Size string

func (s *Size) UnmarshalText(text []byte) error {
	*s = Size(text)
	_, err := s.Bytes()
	return err
}

// leastDefault is the least memory that a sort uses without -S.
const leastDefault = 16 << 20

// Bytes returns the size in bytes. A size that no int can hold is an error.
func (s Size) Bytes() (int, error) {
	if s == "" {
		_, available := sysmem.Memory()
		return int(min(max(available/4, leastDefault), math.MaxInt/2)), nil
	}
	digits := 0
	for digits < len(s) && (s[digits] >= '0' && s[digits] <= '9' || s[digits] == '.') {
		digits++
	}
	n, err := strconv.ParseFloat(string(s[:digits]), 64)
	if err != nil {
		return 0, cli.Usagef("-S %s is not a size: write a number of KiB, or a number with b, K, M, G, T or %%", s)
	}
	switch unit := s[digits:]; unit {
	case "b":
	case "", "k", "K", "KiB":
		n *= 1 << 10
	case "M", "m", "MiB":
		n *= 1 << 20
	case "G", "g", "GiB":
		n *= 1 << 30
	case "T", "t", "TiB":
		n *= 1 << 40
	case "%":
		total, _ := sysmem.Memory()
		if total == 0 {
			return 0, cli.Usagef("-S %s: the memory of this system is unknown", s)
		}
		n *= float64(total) / 100
	default:
		return 0, cli.Usagef("-S %s: %q is not a unit; units are b, K, M, G, T and %%", s, unit)
	}
	if n < extsort.MinMemoryBytes {
		return 0, cli.Usagef("-S %s is too little: at least %s is needed", s, cli.Bytes(extsort.MinMemoryBytes))
	}
	if n > math.MaxInt/2 {
		return 0, fmt.Errorf("-S %s is more than this system can address", s)
	}
	return int(n), nil
}
