package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"runtime"

	"github.com/redlock-go/redlock/internal/base/errno"
)

// listen listens on host:port, or on the path of a socket, for the setting of a name. An address in use, or not of this
// machine, has an exit status of its own: it may be free a moment later. A socket of the supervisor comes first.
func listen(name, address string, mode fs.FileMode) (net.Listener, error) {
	if l, err := takeGiven(name); l != nil || err != nil {
		return l, err
	}
	network := "tcp"
	if len(address) > 0 && (address[0] == '/' || address[0] == '.') {
		network = "unix"
		removeDead(address)
	}
	var l net.Listener
	var err error
	bind := func() { l, err = net.Listen(network, address) }
	if network == "unix" && mode != 0 {
		withMode(mode, bind) // setting the mode later is too late: others have connected by then
	} else {
		bind()
	}
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, errno.AddrInUse), errors.Is(err, errno.BadAddr):
		return nil, &exit{exitNoQuorum, fmt.Errorf("-%s: %w", name, err)}
	}
	return nil, usage("-%s: %v", name, err)
}

// removeDead removes a socket without a listening process: the process that made it was killed. A socket made anew
// since the look stays.
func removeDead(path string) {
	seen, err := os.Lstat(path)
	if err != nil || seen.Mode().Type() != fs.ModeSocket || runtime.GOOS == "windows" {
		return
	}
	c, err := net.Dial("unix", path)
	if err == nil {
		_ = c.Close()
		return
	}
	if now, gone := os.Lstat(path); errors.Is(err, errno.ConnRefused) && gone == nil && os.SameFile(seen, now) {
		_ = os.Remove(path)
	}
}
