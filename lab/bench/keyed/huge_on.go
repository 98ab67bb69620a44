//go:build huge

package main

const hugePages = true
