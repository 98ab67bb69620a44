// Package guides has the programs of docs/guides and docs/records.md: for each library, one as it
// is written with it, and the same on freehold. The tests run both, which print the same, and
// compare the pages with them.
package guides
