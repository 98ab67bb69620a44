// Codec: values of Go types as bytes.
//
// Types without Go pointers are their own bytes, and so are strings and []byte. Others need a
// Codec.

package cache

import (
	"fmt"
	"reflect"
	"strings"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/arg"
)

// A Codec turns values of a type into bytes and back.
type Codec[T any] struct {
	// Append appends the bytes of v to dst, and must not keep dst. It may return other memory
	// instead, such as v's own bytes. The cache copies the result.
	Append func(dst []byte, v T) ([]byte, error)
	// Decode returns the value of b. b is the cache's memory: Decode must neither change nor keep
	// it. If Decode fails, the entry counts as missing. Decode may fail for an entry that another
	// version of the program has stored.
	Decode func(b []byte) (T, error)
}

// NewCodec returns a Codec of two functions as encoding/json has them, and packages for MessagePack
// and CBOR too:
//
//	values := cache.NewCodec[Person](json.Marshal, json.Unmarshal)
//
// unmarshal gets a pointer to a zero T. It must not keep b. For Protocol Buffers write a Codec of
// MarshalAppend and Unmarshal, with *Person as T.
func NewCodec[T any](marshal func(v any) ([]byte, error), unmarshal func(b []byte, v any) error) *Codec[T] {
	if marshal == nil || unmarshal == nil {
		arg.Panicf("cache.NewCodec", "a function is nil")
	}
	return &Codec[T]{
		Append: func(_ []byte, v T) ([]byte, error) { return marshal(v) },
		Decode: func(b []byte) (v T, err error) {
			err = unmarshal(b, &v)
			return v, err
		},
	}
}

// codecOf returns codec. If it is nil, codecOf returns the codec of types that are their own bytes.
// field is Keys or Values.
func codecOf[T any](field string, codec *Codec[T]) Codec[T] {
	t := reflect.TypeFor[T]()
	switch {
	case codec != nil:
		return *codec
	case t.Kind() == reflect.String:
		return Codec[T]{
			Append: func(dst []byte, v T) ([]byte, error) { return append(dst, *(*string)(unsafe.Pointer(&v))...), nil },
			Decode: func(b []byte) (v T, _ error) {
				*(*string)(unsafe.Pointer(&v)) = string(b)
				return v, nil
			},
		}
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return Codec[T]{
			Append: func(dst []byte, v T) ([]byte, error) { return append(dst, *(*[]byte)(unsafe.Pointer(&v))...), nil },
			Decode: func(b []byte) (v T, _ error) {
				*(*[]byte)(unsafe.Pointer(&v)) = append([]byte{}, b...)
				return v, nil
			},
		}
	}
	if err := freehold.PointerFree[T](); err != nil {
		fault, _, _ := strings.Cut(err.Error(), "; ") // without its advice: the caller's type is right
		arg.PointerFree("cache.NewOf", field[:1]+"=", fmt.Errorf("%s; set OfOptions.%s, for example to cache.NewCodec[%v](json.Marshal, json.Unmarshal)", fault, field, t))
	}
	return Codec[T]{
		Append: func(dst []byte, v T) ([]byte, error) { return append(dst, memory(&v)...), nil },
		Decode: func(b []byte) (v T, err error) {
			if len(b) != len(memory(&v)) {
				return v, fmt.Errorf("freehold: %d bytes are no %v", len(b), t)
			}
			copy(memory(&v), b)
			return v, nil
		},
	}
}

// memory returns the bytes of v.
func memory[T any](v *T) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v)) }
