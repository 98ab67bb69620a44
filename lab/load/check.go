package load

import (
	"cmp"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"github.com/freehold-go/freehold/internal/sysmem"
)

// Between returns an error if the value of a flag is not from least to most.
func Between[T cmp.Ordered](flag string, v, least, most T) error {
	if v < least || v > most {
		return cli.Usagef("%s %v: %v to %v are possible", flag, v, least, most)
	}
	return nil
}

// unbounded is more memory than machines have.
const unbounded cli.Size = 1 << 50

// PartOfMemory returns a part of the machine's memory, unbounded if the system does not say how
// much there is.
func PartOfMemory(part float64) cli.Size {
	total, _ := sysmem.Memory()
	if total == 0 {
		return unbounded
	}
	return cli.Size(part * float64(total))
}
