package pool

// noCopy is for types that must not be copied: go vet (copylocks) finds copies
// of what has a field of this type.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}
