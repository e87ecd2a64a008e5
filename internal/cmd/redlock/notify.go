package main

import (
	"net"
	"os"
	"strings"
	"time"
)

// notify reports the state of the process to a supervisor of the kind of systemd: sd_notify(3). Without one it does nothing. No
// error matters: a supervisor that does not listen learns of the end all the same.
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
