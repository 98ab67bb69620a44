package auto

import (
	"errors"
	"strings"
	"testing"

	"github.com/freehold-go/freehold/budget"
)

func TestImportStartsABudget(t *testing.T) {
	b := budget.Running()
	defer start(budget.Start, t.Output()) // for the example
	if b == nil {
		t.Fatal("no budget runs")
	}
	var said strings.Builder
	start(budget.Start, &said)
	if !strings.Contains(said.String(), "a budget runs already") {
		t.Errorf("a second one says %q", said.String())
	}
	b.Stop()
	said.Reset()
	start(budget.Start, &said)
	if again := budget.Running(); again == nil || again == b || said.String() != "" {
		t.Errorf("after Stop: %v, %q", again, said.String())
	}
	budget.Running().Stop()
	failure := errors.New("failure")
	start(func(o *budget.Options) (*budget.Budget, error) {
		if o != nil {
			t.Errorf("options %+v", o)
		}
		return nil, failure
	}, &said)
	if said.String() != "failure\n" || budget.Running() != nil {
		t.Errorf("an error is told as %q", said.String())
	}
}
