//go:build race

package main

// raceBuild says that freehold's memory is Go memory here.
const raceBuild = true
