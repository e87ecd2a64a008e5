package fakeredis

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// cmdInfo answers the named sections, or all there are.
func (c *conn) cmdInfo(args [][]byte) {
	var parts []string
	for _, section := range []struct {
		name string
		text func(*Server) string
	}{{"SERVER", (*Server).infoServer}, {"MEMORY", (*Server).infoMemory}, {"REPLICATION", (*Server).infoReplication}} {
		if len(args) == 1 || slices.ContainsFunc(args[1:], func(arg []byte) bool { return is(arg, section.name) }) {
			parts = append(parts, section.text(c.srv))
		}
	}
	c.verbatim(strings.Join(parts, "\r\n"))
}

func (s *Server) infoServer() string {
	d := s.dialect
	var b strings.Builder
	fmt.Fprintf(&b, "# Server\r\nredis_version:%s\r\n", d.redisName)
	if d.redisName != d.version {
		fmt.Fprintf(&b, "server_name:%s\r\n%[1]s_version:%s\r\n", d.product, d.version)
	}
	up := s.opts.Now().Sub(s.started)
	_, port, _ := net.SplitHostPort(s.addr)
	fmt.Fprintf(&b, "%s:standalone\r\nos:%s %s\r\narch_bits:64\r\nprocess_id:%d\r\nrun_id:%s\r\ntcp_port:%s\r\n",
		d.modeField, runtime.GOOS, runtime.GOARCH, os.Getpid(), s.runID, port)
	fmt.Fprintf(&b, "server_time_usec:%d\r\nuptime_in_seconds:%d\r\nuptime_in_days:%d\r\n",
		s.clock().UnixMicro(), int64(up/time.Second), int64(up/(24*time.Hour)))
	return b.String()
}

func (s *Server) infoMemory() string {
	return "# Memory\r\nused_memory:1048576\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n"
}

func (s *Server) infoReplication() string {
	role := "master"
	if s.replica {
		role = "slave"
	}
	before := cmp.Or(s.before, strings.Repeat("0", len(s.history)))
	return "# Replication\r\nrole:" + role + "\r\nconnected_slaves:0\r\nmaster_replid:" + s.history + "\r\nmaster_replid2:" + before + "\r\n"
}

func (c *conn) cmdTime([][]byte) {
	now := c.srv.clock()
	c.array(2)
	c.text(strconv.FormatInt(now.Unix(), 10))
	c.text(strconv.Itoa(now.Nanosecond() / 1000))
}
