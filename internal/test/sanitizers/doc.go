// Package sanitizers has programs with one mistake each, which builds with -race or -asan must
// report, and correct twins of them. It has tests only.
package sanitizers
