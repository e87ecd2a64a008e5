//go:build race

package conn

// raceEnabled is whether the race detector, which is slow, is part of the build.
const raceEnabled = true
