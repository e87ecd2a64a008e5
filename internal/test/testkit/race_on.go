//go:build race

package testkit

// Race reports whether the build has the race detector: it is slow.
const Race = true
