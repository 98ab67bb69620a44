package buffer_test

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/buffer"
)

func TestLogsShowFigures(t *testing.T) {
	b := buffer.New(alloctest.New(t), nil)
	r, err := buffer.NewRecords(b, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.AppendBytes([]byte("three")); err != nil {
		t.Fatal(err)
	}
	open := fmt.Sprintf("[len=%d cap=%d in_file=false]", b.Len(), b.Cap())
	expect := func(v slog.LogValuer, want string) {
		t.Helper()
		if got := v.LogValue().String(); got != want {
			t.Errorf("%T: %s, want %s", v, got, want)
		}
	}
	expect(b, open)
	if got := fmt.Sprint(b); got != "buffer.Buffer "+open {
		t.Errorf("printed as %.100s", got)
	}
	expect(r, "[records=1 buffer="+open+"]")
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	expect(b, "[closed=true]")
	expect((*buffer.Buffer)(nil), "<nil>")
	expect((*buffer.Records)(nil), "<nil>")
	expect(&buffer.Records{}, "<nil>")
}
