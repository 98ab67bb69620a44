// Package keyed has the benchmarks of maps, ordered maps and interned strings.
package keyed
