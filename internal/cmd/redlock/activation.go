package main

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
)

// firstGiven is the number of the first file passed by a supervisor: SD_LISTEN_FDS_START.
const firstGiven = 3

// given holds the listeners opened by a supervisor, as in sd_listen_fds(3), by name: "metrics" is the listener of
// -metrics, and any other the one of -listen. Two servers may have the same listener, so no connection is refused while
// one replaces the other. The variables are dropped: they are not meant for programs started by this one.
var given = sync.OnceValues(func() (map[string]net.Listener, error) {
	defer func() {
		for _, name := range []string{"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"} {
			_ = os.Unsetenv(name)
		}
	}()
	if os.Getenv("LISTEN_PID") != strconv.Itoa(os.Getpid()) {
		return nil, nil // another process's
	}
	n, err := strconv.Atoi(os.Getenv("LISTEN_FDS"))
	if err != nil || n < 1 {
		return nil, nil
	}
	names := strings.Split(os.Getenv("LISTEN_FDNAMES"), ":")
	all := map[string]net.Listener{}
	for i := range n {
		name := "listen"
		if i < len(names) && names[i] == "metrics" {
			name = "metrics"
		}
		if all[name] != nil {
			return nil, fmt.Errorf("LISTEN_FDS has two sockets for -%s: FileDescriptorName=metrics is the name of that of -metrics", name)
		}
		file := os.NewFile(uintptr(firstGiven+i), name)
		l, err := net.FileListener(file) // a copy, closed on exec
		_ = file.Close()
		if err != nil {
			return nil, fmt.Errorf("LISTEN_FDS: file %d is no listening socket: %w", firstGiven+i, err)
		}
		if u, is := l.(*net.UnixListener); is {
			u.SetUnlinkOnClose(false) // it is the supervisor's
		}
		all[name] = l
	}
	return all, nil
})

// takeGiven returns the listener opened by a supervisor for a setting, or nil.
func takeGiven(name string) (net.Listener, error) {
	all, err := given()
	if err != nil {
		return nil, usage("%v", err)
	}
	return all[name], nil
}
