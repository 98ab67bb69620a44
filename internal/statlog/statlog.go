// Statlog: what slog shows of statistics.

// Package statlog lists the fields of a Stats for slog.
package statlog

import (
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"unicode"
)

// Group returns a group of the fields of a struct in snake case, but those named. MaxBytes is
// limit. It leaves out slices, empty strings and limits of 0. The fields of a struct within are
// among the others, and its first has the name of the struct, unless it is a [slog.LogValuer],
// which is left out if it is zero.
func Group(st any, but ...string) slog.Value {
	return slog.GroupValue(fields(nil, "", reflect.ValueOf(st), but)...)
}

// Of returns the LogValue of what stats returns, or <nil> if p is nil.
func Of[T any, S slog.LogValuer](p *T, stats func() S) slog.Value {
	if p == nil {
		return slog.StringValue("<nil>")
	}
	return stats().LogValue()
}

// fields appends the fields of a struct, of which the first is called first unless that is "".
func fields(to []slog.Attr, first string, st reflect.Value, but []string) []slog.Attr {
	for i := range st.NumField() {
		field, v := st.Type().Field(i), st.Field(i)
		key := snake(field.Name)
		switch {
		case field.Name == "MaxBytes":
			key = "limit"
		case i == 0 && first != "":
			key = first
		}
		value := v.Interface()
		_, isLogged := value.(slog.LogValuer)
		text, isText := value.(fmt.Stringer)
		switch {
		case slices.Contains(but, field.Name), v.Kind() == reflect.Slice,
			v.IsZero() && (isLogged && !field.Anonymous || v.Kind() == reflect.String || strings.HasPrefix(field.Name, "Max")):
		case field.Anonymous:
			to = fields(to, "", v, but)
		case v.Kind() == reflect.Struct && !isLogged:
			to = fields(to, key, v, but)
		case isText && !isLogged:
			to = append(to, slog.String(key, text.String()))
		default:
			to = append(to, slog.Any(key, value))
		}
	}
	return to
}

// snake returns a field's name in snake case: GCPercent is gc_percent, IDs is ids.
func snake(name string) string {
	var b strings.Builder
	letters := []rune(name)
	for i, r := range letters {
		if i > 0 && unicode.IsUpper(r) {
			next := string(letters[i+1:])
			if unicode.IsLower(letters[i-1]) || next != "" && next != "s" && unicode.IsLower(letters[i+1]) {
				b.WriteByte('_')
			}
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
