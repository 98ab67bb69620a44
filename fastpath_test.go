package freehold_test

import (
	"strings"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/heap"
)

func TestFastPathSaysWhyNot(t *testing.T) {
	err, obstacle := freehold.FastPath(), heap.Obstacle()
	if (err == nil) != (obstacle == "") || err != nil && !strings.HasSuffix(err.Error(), ": "+obstacle) {
		t.Errorf("%v, want %q", err, obstacle)
	}
}
