package z

// OnRewrite makes each rewrite of a tree's file call f halfway, until end.
func OnRewrite(f func()) (end func()) {
	rewriting = f
	return func() { rewriting = func() {} }
}
