// Package misuse holds tiny programs with one mistake each, and a correct twin of each. Its
// tests run them in the build of the test, check every promise of docs/reliability.md, and write
// the tables there.
package misuse
