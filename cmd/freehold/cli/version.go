package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/freehold-go/freehold"
)

// Version returns one line: "freehold (devel) 1a2b3c4d5e6f go1.26.0 linux/amd64; small blocks take
// the fast path", or the reason why they do not.
func Version(name string) string {
	text := name + " (devel)"
	if info, ok := debug.ReadBuildInfo(); ok {
		if v := info.Main.Version; v != "" {
			text = name + " " + v
		}
		for _, set := range info.Settings {
			switch {
			case set.Key == "vcs.revision":
				text += " " + set.Value[:min(12, len(set.Value))]
			case set.Key == "vcs.modified" && set.Value == "true":
				text += "+changes"
			}
		}
	}
	text = fmt.Sprintf("%s %s %s/%s", text, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	if err := freehold.FastPath(); err != nil {
		return text + "; " + strings.TrimPrefix(err.Error(), "freehold: ")
	}
	return text + "; small blocks take the fast path"
}
