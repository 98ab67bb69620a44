package vm

import (
	"os"
	"strconv"
	"strings"
)

// Mappings returns how many mappings the process may have.
func Mappings() int {
	text, _ := os.ReadFile("/proc/sys/vm/max_map_count")
	if n, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
		return n
	}
	return 65_530 // the kernel's default
}
