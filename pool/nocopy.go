package pool

// noCopy makes go vet (copylocks) report copies of a struct with a field of this
// type.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}
