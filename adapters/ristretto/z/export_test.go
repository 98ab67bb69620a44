package z

// OnRewrite has f called amid each rewrite of a tree's file, until end.
func OnRewrite(f func()) (end func()) {
	rewriting = f
	return func() { rewriting = func() {} }
}
