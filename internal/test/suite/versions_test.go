package suite

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// docs/adapters.md names the versions that the tests of adapters and overlays run with.
func TestDocumentedVersions(t *testing.T) {
	const root = "../../.."
	read := func(path string) string {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	docs := strings.ToLower(read(root + "/docs/adapters.md"))
	n := 0
	has := func(path, library, version string) {
		if n++; !strings.Contains(docs, library+" "+version) {
			t.Errorf("%s tests %s %s, which docs/adapters.md lacks", path, library, version)
		}
	}
	mods, _ := filepath.Glob(root + "/adapters/*/go.mod")
	for _, path := range mods {
		library := filepath.Base(filepath.Dir(path))
		require := regexp.MustCompile(`\n\s*[^\n ]*` + library + `[^\n ]* (v\S+)\s`).FindStringSubmatch(read(path))
		if require == nil {
			t.Errorf("%s requires no %s", path, library)
			continue
		}
		has(path, library, require[1])
	}
	tests, _ := filepath.Glob(root + "/adapters/*/*_test.go")
	for _, path := range append(tests, root+"/cmd/freehold/overlay_test.go") {
		for _, m := range regexp.MustCompile(`Download\(t, "[^"]*?(\w+)(/v\d+)?@(v[^"]+)"`).FindAllStringSubmatch(read(path), -1) {
			has(path, m[1], m[3])
		}
	}
	if n < 12 {
		t.Errorf("%d versions, want 12 or more", n)
	}
}
