//go:build !race

package resp_test

// raceEnabled is whether the race detector, which allocates, is part of the build.
const raceEnabled = false
