package buffer

import (
	"errors"
	"testing"

	"github.com/freehold-go/freehold/internal/keysort"
	"github.com/freehold-go/freehold/internal/panics"
)

// Of what ends several goroutines of a sort, its caller gets the first panic, else the first error.
func TestFirstPanicOfASortPasses(t *testing.T) {
	var j job
	fault := errors.New("a fault")
	j.fail(fault)
	j.fail(errors.New("another"))
	if err := keysort.Pass(j.failed); err != fault {
		t.Errorf("%v", err)
	}
	for _, value := range []string{"first", "second"} {
		keysort.Catch(func() error { panic(value) }, j.fail)
	}
	j.fail(fault)
	panics.Want(t, "first", func() { keysort.Pass(j.failed) })
}
