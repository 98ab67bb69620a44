// Package sanitizers has programs with one mistake each, which builds with -race or -asan must
// report, and their correct twins. It has only tests.
package sanitizers
