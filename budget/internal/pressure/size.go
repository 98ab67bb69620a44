// Sizes: bytes as text, in the units of GOMEMLIMIT.

package pressure

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// units are GOMEMLIMIT's, the largest first. B is last, since the others end in it too.
var units = []struct {
	suffix string
	bytes  int64
}{
	{"TiB", 1 << 40},
	{"GiB", 1 << 30},
	{"MiB", 1 << 20},
	{"KiB", 1 << 10},
	{"B", 1},
}

// parseSize returns the bytes of a size such as 512MiB or 1000000.
func parseSize(s string) (int64, error) {
	digits, unit := s, int64(1)
	for _, u := range units {
		if d, ok := strings.CutSuffix(s, u.suffix); ok {
			digits, unit = d, u.bytes
			break
		}
	}
	n, err := strconv.ParseUint(digits, 10, 63)
	if err != nil || n == 0 || int64(n) > math.MaxInt64/unit {
		return 0, fmt.Errorf("%q, want a size above 0 in B, KiB, MiB, GiB or TiB, such as 512MiB", s)
	}
	return int64(n) * unit, nil
}

// FormatSize returns a size as text, in the largest unit that is not above it. It has one decimal,
// unless it is a multiple of the unit.
func FormatSize(n int64) string {
	for _, u := range units {
		one := u.bytes - u.bytes/20480 // 0.05/1024 less: 1023.95KiB rounds to 1.0MiB
		if n >= one || n <= -one {
			if n%u.bytes == 0 {
				return strconv.FormatInt(n/u.bytes, 10) + u.suffix
			}
			return strconv.FormatFloat(float64(n)/float64(u.bytes), 'f', 1, 64) + u.suffix
		}
	}
	return "0B"
}
