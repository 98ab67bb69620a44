package main

// An object is the value that typed calls hand out.
type object [64]byte
