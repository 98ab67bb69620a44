//go:build !linux

package guardlog

import (
	"os"

	"github.com/freehold-go/freehold/internal/vm"
)

func shared(uintptr) (uintptr, *os.File, error) { return 0, nil, vm.ErrUnsupported }
