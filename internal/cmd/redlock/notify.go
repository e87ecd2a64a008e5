package main

import (
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// beat answers the watchdog of a supervisor (WatchdogSec of systemd) until the end of life. In each half of the
// watchdog's time it checks that the server's work goes on.
func beat(over <-chan struct{}, alive func() bool) {
	usec, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64)
	if pid := os.Getenv("WATCHDOG_PID"); err != nil || usec <= 0 || pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return
	}
	tick := time.NewTicker(time.Duration(usec) * time.Microsecond / 2)
	defer tick.Stop()
	for {
		if alive() {
			notify("WATCHDOG=1")
		}
		select {
		case <-over:
			return
		case <-tick.C:
		}
	}
}

// notify reports the state of the process to a supervisor like systemd: sd_notify(3). Without one it does nothing.
// Errors do not matter: a supervisor that does not listen learns of the end all the same.
func notify(state string) {
	socket := os.Getenv("NOTIFY_SOCKET")
	if socket == "" || !strings.ContainsAny(socket[:1], "/@") {
		return
	}
	c, err := net.DialTimeout("unixgram", socket, time.Second) // a name in the abstract namespace begins with @ in both
	if err != nil {
		return
	}
	defer c.Close()
	_ = c.SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = c.Write([]byte(state))
}
