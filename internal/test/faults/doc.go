// Package faults has what tests of full disks and of killed processes share. Its own
// tests fill disks with buffers and external sorts, and kill writers of persistent
// buffers. Those of "freehold sort" are in cmd/freehold.
//
// The tests are for Linux, where a process can have mounts of its own.
package faults
