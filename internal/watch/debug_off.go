//go:build !freehold_debug

package watch

const debugging = false
