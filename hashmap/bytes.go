// Bytes: calls with keys given as bytes, where K is a string type.

package hashmap

import "unsafe"

// GetBytes is [Map.Get] with a key given as bytes. It copies nothing.
func GetBytes[K ~string, V any](m *Map[K, V], key []byte) (V, bool) { return m.Get(keyOf[K](key)) }

// PutBytes is [Map.Put] with a key given as bytes, which the map copies.
func PutBytes[K ~string, V any](m *Map[K, V], key []byte, v V) error { return m.Put(keyOf[K](key), v) }

// UpdateBytes is [Map.Update] with a key given as bytes, which the map copies if it is new.
func UpdateBytes[K ~string, V any](m *Map[K, V], key []byte, fn func(v *V, found bool)) error {
	return m.Update(keyOf[K](key), fn)
}

// PutBytesIfAbsent is [Map.PutIfAbsent] with a key given as bytes, which the map copies if it is
// new.
func PutBytesIfAbsent[K ~string, V any](m *Map[K, V], key []byte, v V) (value V, found bool, err error) {
	return m.PutIfAbsent(keyOf[K](key), v)
}

// DeleteBytes is [Map.Delete] with a key given as bytes. It copies nothing.
func DeleteBytes[K ~string, V any](m *Map[K, V], key []byte) bool { return m.Delete(keyOf[K](key)) }

// GetSharedBytes is [Shared.Get] with a key given as bytes. It copies no key.
func GetSharedBytes[K ~string, V any](m *Shared[K, V], key []byte) (V, bool) {
	return m.Get(keyOf[K](key))
}

// ViewSharedBytes is [Shared.View] with a key given as bytes. It copies nothing.
func ViewSharedBytes[K ~string, V any](m *Shared[K, V], key []byte, fn func(v V)) bool {
	return m.View(keyOf[K](key), fn)
}

// PutSharedBytes is [Shared.Put] with a key given as bytes, which the map copies.
func PutSharedBytes[K ~string, V any](m *Shared[K, V], key []byte, v V) error {
	return m.Put(keyOf[K](key), v)
}

// UpdateSharedBytes is [Shared.Update] with a key given as bytes, which the map copies if it is
// new.
func UpdateSharedBytes[K ~string, V any](m *Shared[K, V], key []byte, fn func(v *V, found bool)) error {
	return m.Update(keyOf[K](key), fn)
}

// PutSharedBytesIfAbsent is [Shared.PutIfAbsent] with a key given as bytes, which the map copies if
// it is new.
func PutSharedBytesIfAbsent[K ~string, V any](m *Shared[K, V], key []byte, v V) (value V, found bool, err error) {
	return m.PutIfAbsent(keyOf[K](key), v)
}

// AppendSharedBytes is [Shared.AppendTo] with a key given as bytes. It copies no key.
func AppendSharedBytes[K ~string, V any](m *Shared[K, V], dst, key []byte) ([]byte, bool) {
	return m.AppendTo(dst, keyOf[K](key))
}

// DeleteSharedBytes is [Shared.Delete] with a key given as bytes. It copies nothing.
func DeleteSharedBytes[K ~string, V any](m *Shared[K, V], key []byte) bool {
	return m.Delete(keyOf[K](key))
}

// DeleteSharedBytesIf is [Shared.DeleteIf] with a key given as bytes. It copies nothing.
func DeleteSharedBytesIf[K ~string, V any](m *Shared[K, V], key []byte, cond func(v V) bool) bool {
	return m.DeleteIf(keyOf[K](key), cond)
}

// GetFrozenBytes is [Frozen.Get] with a key given as bytes. It copies no key.
func GetFrozenBytes[K ~string, V any](f *Frozen[K, V], key []byte) (v V, ok bool, err error) {
	return f.Get(keyOf[K](key))
}

// ViewFrozenBytes is [Frozen.View] with a key given as bytes. It copies nothing.
func ViewFrozenBytes[K ~string, V any](f *Frozen[K, V], key []byte, fn func(v V)) (ok bool, err error) {
	return f.View(keyOf[K](key), fn)
}

// keyOf returns b as a key, without a copy. It is valid until b is written to.
func keyOf[K ~string](b []byte) K { return K(unsafe.String(unsafe.SliceData(b), len(b))) }
