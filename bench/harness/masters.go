package harness

import (
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/redlock-go/redlock/bench/child"
	"github.com/redlock-go/redlock/bench/place"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
)

// mastersEnv makes a copy of this binary the masters; its value is their number.
const mastersEnv = "REDLOCK_BENCH_MASTERS"

// startMasters starts n embedded masters, and returns their addresses.
func startMasters(n int) (*child.Process, []string, error) {
	p, addrs, err := child.StartBy(place.Serve, mastersEnv, strconv.Itoa(n), n)
	if err != nil {
		err = fmt.Errorf("embedded masters: %w", err)
	}
	return p, addrs, err
}

// ServeIfMasters is the masters, in a process that was started for that.
func ServeIfMasters() { child.Serve(mastersEnv, serve) }

// serve starts masters, prints their addresses, one a line, and waits for the end of standard
// input.
func serve(count string) error {
	n, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	for range n {
		s, err := fakeredis.Start(fakeredis.Options{})
		if err != nil {
			return err
		}
		defer s.Close()
		fmt.Println(s.Addr())
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}
