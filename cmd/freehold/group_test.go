package main

import (
	"math"
	"os"
	"path/filepath"
	"testing"
)

func TestGroupRoom(t *testing.T) {
	const none = math.MaxInt64
	tests := []struct {
		name  string
		list  string
		files map[string]string
		want  int64
	}{
		{"no limit", "0::/a\n", map[string]string{"a/memory.max": "max\n", "a/memory.current": "10\n"}, none},
		{"version 2", "0::/a\n", map[string]string{"a/memory.max": "1000\n", "a/memory.current": "300\n"}, 700},
		{"cached files can go", "0::/a\n", map[string]string{
			"a/memory.max": "1000\n", "a/memory.current": "900\n", "a/memory.stat": "active_file 7\ninactive_file 50\n"}, 150},
		{"a group above is narrower", "0::/a/b\n", map[string]string{
			"a/memory.max": "1000\n", "a/memory.current": "990\n", "a/b/memory.max": "500\n", "a/b/memory.current": "100\n"}, 10},
		{"more used than allowed", "0::/a\n", map[string]string{"a/memory.max": "1000\n", "a/memory.current": "1001\n"}, 0},
		{"version 1", "5:cpu:/x\n4:cpu,memory:/a\n", map[string]string{
			"memory/a/memory.limit_in_bytes": "1000\n", "memory/a/memory.usage_in_bytes": "500\n",
			"memory/a/memory.stat": "inactive_file 1\ntotal_inactive_file 20\n"}, 520},
		{"version 1 says so for none", "4:memory:/a\n", map[string]string{
			"memory/a/memory.limit_in_bytes": "9223372036854771712\n", "memory/a/memory.usage_in_bytes": "500\n"}, 9223372036854771712 - 500},
		{"both", "4:memory:/a\n0::/a\n", map[string]string{
			"memory/a/memory.limit_in_bytes": "1000\n", "memory/a/memory.usage_in_bytes": "500\n",
			"a/memory.max": "300\n", "a/memory.current": "100\n"}, 200},
		{"the root alone can be seen", "0::/outside/of/here\n", map[string]string{"memory.max": "1000\n", "memory.current": "1\n"}, 999},
		{"what is no number", "0::/a\n", map[string]string{"a/memory.max": "many\n", "a/memory.current": "1\n"}, none},
		{"what is no group", "nothing\n\n", nil, none},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			write := func(file, text string) {
				path := filepath.Join(dir, file)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			write("list", tt.list)
			for file, text := range tt.files {
				write(filepath.Join("root", file), text)
			}
			if got := groupRoom(filepath.Join(dir, "list"), filepath.Join(dir, "root")); got != tt.want {
				t.Errorf("%d bytes, want %d", got, tt.want)
			}
		})
	}
	if got := groupRoom(filepath.Join(t.TempDir(), "nothing"), "/"); got != none {
		t.Errorf("%d bytes on a system without groups", got)
	}
}
