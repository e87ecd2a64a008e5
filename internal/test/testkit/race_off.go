//go:build !race

package testkit

// Race reports whether the race detector, which is slow, is part of the build.
const Race = false
