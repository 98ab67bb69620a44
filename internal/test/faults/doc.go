// Package faults has helpers for tests of full disks and killed processes. Its own tests fill
// disks with buffers, external sorts and snapshots of caches, and kill writers of persistent
// buffers and of snapshots. The tests of "freehold sort" are in cmd/freehold.
//
// The tests are for Linux, where a process can have mounts of its own.
package faults
