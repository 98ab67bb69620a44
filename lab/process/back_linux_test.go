package process

import "testing"

// TestBack: Back leaves no memory resident.
func TestBack(t *testing.T) {
	const n = 64 << 20
	before, err := Resident()
	if err != nil {
		t.Skip(err)
	}
	if err := Back(n); err != nil {
		t.Fatal(err)
	}
	if after, err := Resident(); err != nil || after > before+n/2 {
		t.Errorf("%d bytes are resident, %d before: %v", after, before, err)
	}
}
