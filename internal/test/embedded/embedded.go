// Package embedded starts masters inside the process, for trying a front end where no server is
// installed. They are the masters of package fakeredis, known from tests: they keep keys in memory
// alone, and the end of one process takes a majority with it. So they are for trying and for
// demonstrations: no library code imports this room, but the command and the modules of bench do.
package embedded

import (
	"errors"

	"github.com/redlock-go/redlock/internal/test/fakeredis"
)

// Masters are independent masters on free ports of 127.0.0.1, numbered from 0.
type Masters []*fakeredis.Server

// Start starts n masters.
func Start(n int) (m Masters, err error) {
	for range n {
		s, err := fakeredis.Start(fakeredis.Options{})
		if err != nil {
			return nil, errors.Join(err, m.Close())
		}
		m = append(m, s)
	}
	return m, nil
}

// Addrs returns the addresses of the masters.
func (m Masters) Addrs() []string { return fakeredis.Addrs(m) }

// Nodes returns the masters, for redlock.Config. They are persistent: they never start anew, so a
// client need not wait out their quarantine.
func (m Masters) Nodes() (nodes []string) {
	for _, s := range m {
		nodes = append(nodes, "redis://"+s.Addr()+"?persistent=yes")
	}
	return nodes
}

// Kill ends a master like a dying process: connections end, and new ones are refused.
func (m Masters) Kill(i int) { m[i].Down() }

// Close ends all masters.
func (m Masters) Close() (err error) {
	for _, s := range m {
		err = errors.Join(err, s.Close())
	}
	return err
}
