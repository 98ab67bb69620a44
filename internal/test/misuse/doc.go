// Package misuse holds tiny programs with one mistake each, and the correct twin
// of each. Its tests run them in the build that they find themselves in, and
// check that every promise of docs/reliability.md holds, whose tables they write.
package misuse
