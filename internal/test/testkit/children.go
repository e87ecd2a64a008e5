package testkit

import "os"

// ChildrenEndAtOnce is called by a TestMain of tests that start their binary again: with the race
// detector each such process would sleep for a second at its end. GORACE wins where it is set.
func ChildrenEndAtOnce() {
	if os.Getenv("GORACE") == "" {
		_ = os.Setenv("GORACE", "atexit_sleep_ms=0")
	}
}
