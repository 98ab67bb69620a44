// FrozenTypes: how a frozen map stores K and V.

package hashmap

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/hash"
)

// frozenTypes describes K and V. A key or value of the kind isLarge is stored as the bytes of its Go
// value.
//
// Buckets have heads if sizes vary. They also have heads if values are large, since a search then
// skips an entry by its head, and if the size of K and V is 0.
type frozenTypes struct {
	hash                 hasher
	keyKind              textKind // isString or isLarge
	valueKind            textKind // isString, isBytes or isLarge
	keyBytes, valueBytes uint64   // sizes of K and V
	heads                bool     // buckets have heads
	text                 string   // the layouts of K and V, as the header has them
}

// frozenTypesOf returns the types of K and V. It panics in the name of call if Freeze cannot store
// them.
func frozenTypesOf[K comparable, V any](call string) frozenTypes {
	kt, vt := reflect.TypeFor[K](), reflect.TypeFor[V]()
	t := frozenTypes{keyKind: isString, keyBytes: uint64(kt.Size()), valueBytes: uint64(vt.Size())}
	t.hash, t.valueKind = kindsOf[K, V](call)
	if t.hash.kind == otherKeys {
		arg.Panicf(call, "K=%v, want string, or a type that is compared by its bytes: one without floats, padding and blank fields", kt)
	}
	t.heads = t.hash.kind == stringKeys || t.valueKind != noText || t.valueBytes >= largeBytes || t.keyBytes+t.valueBytes == 0
	if t.hash.kind == plainKeys {
		t.keyKind = isLarge
	}
	if t.valueKind == noText {
		t.valueKind = isLarge
	}
	var b strings.Builder
	describe(&b, kt)
	b.WriteString(" to ")
	describe(&b, vt)
	if t.text = b.String(); len(t.text) > frozenBlock-frozenTypesAt {
		sum := hash.SeedOf([3]uint64{})
		t.text = fmt.Sprintf("types with the hash %#x", sum.String(t.text))
	}
	return t
}

// describe writes the layout of a type: its kind, and the names, offsets and types of its fields.
func describe(b *strings.Builder, t reflect.Type) {
	switch t.Kind() {
	case reflect.Struct:
		fmt.Fprintf(b, "struct of %d B{", t.Size())
		for i := range t.NumField() {
			f := t.Field(i)
			fmt.Fprintf(b, "%s at %d ", f.Name, f.Offset)
			describe(b, f.Type)
			b.WriteByte(';')
		}
		b.WriteByte('}')
	case reflect.Array:
		fmt.Fprintf(b, "[%d]", t.Len())
		describe(b, t.Elem())
	case reflect.Slice:
		b.WriteString("bytes")
	case reflect.Int, reflect.Uint, reflect.Uintptr: // as int32 or int64, uint32 or uint64
		fmt.Fprintf(b, "%s%d", strings.TrimSuffix(t.Kind().String(), "ptr"), t.Bits())
	default:
		b.WriteString(t.Kind().String())
	}
}
