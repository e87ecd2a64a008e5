package fakeredis

import (
	"fmt"
	"net"
	"os"
	"path"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// infoSections are the sections of INFO, in their order.
var infoSections = []struct {
	name string
	text func(*Server) string
}{
	{"server", (*Server).infoServer},
	{"clients", (*Server).infoClients},
	{"memory", (*Server).infoMemory},
	{"replication", (*Server).infoReplication},
	{"keyspace", (*Server).infoKeyspace},
}

func (c *conn) cmdInfo(args [][]byte) {
	wanted := func(name string) bool {
		for _, arg := range args[1:] {
			if word := strings.ToLower(string(arg)); word == name || word == "all" || word == "default" || word == "everything" {
				return true
			}
		}
		return len(args) == 1
	}
	var parts []string
	for _, section := range infoSections {
		if wanted(section.name) {
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
	fmt.Fprintf(&b, "%s:%s\r\nos:%s %s\r\narch_bits:64\r\nprocess_id:%d\r\nrun_id:%s\r\ntcp_port:%s\r\n",
		d.modeField, s.opts.Mode, runtime.GOOS, runtime.GOARCH, os.Getpid(), s.runID, s.port())
	fmt.Fprintf(&b, "server_time_usec:%d\r\nuptime_in_seconds:%d\r\nuptime_in_days:%d\r\n",
		s.clock().UnixMicro(), int64(up/time.Second), int64(up/(24*time.Hour)))
	return b.String()
}

// port is 0 where a Unix socket is served, as in Redis.
func (s *Server) port() string {
	if _, port, err := net.SplitHostPort(s.addr); err == nil {
		return port
	}
	return "0"
}

func (s *Server) infoClients() string {
	return fmt.Sprintf("# Clients\r\nconnected_clients:%d\r\nmaxclients:10000\r\n", len(s.conns))
}

func (s *Server) infoMemory() string {
	return "# Memory\r\nused_memory:1048576\r\nmaxmemory:" + s.config("maxmemory") +
		"\r\nmaxmemory_policy:" + s.config("maxmemory-policy") + "\r\n"
}

func (s *Server) infoReplication() string {
	role := "master"
	if s.replica {
		role = "slave"
	}
	return "# Replication\r\nrole:" + role + "\r\nconnected_slaves:0\r\nmaster_replid:" + s.runID + "\r\n"
}

func (s *Server) infoKeyspace() string {
	var b strings.Builder
	b.WriteString("# Keyspace\r\n")
	for i := range s.dbs {
		if n := s.dbs[i].count; n > 0 {
			fmt.Fprintf(&b, "db%d:keys=%d,expires=0,avg_ttl=0\r\n", i, n)
		}
	}
	return b.String()
}

func (c *conn) cmdRole([][]byte) {
	if c.srv.replica {
		c.array(5)
		c.text("slave")
		c.text("127.0.0.1")
		c.int(6379)
		c.text("connect")
		c.int(-1)
		return
	}
	c.array(3)
	c.text("master")
	c.int(0)
	c.array(0)
}

func (c *conn) cmdTime([][]byte) {
	now := c.srv.clock()
	c.array(2)
	c.text(strconv.FormatInt(now.Unix(), 10))
	c.text(strconv.Itoa(now.Nanosecond() / 1000))
}

// configuration is the answer of CONFIG GET unless Options.Config has another.
var configuration = map[string]string{
	"appendonly":       "no",
	"databases":        strconv.Itoa(databases),
	"maxmemory":        "0",
	"maxmemory-policy": "noeviction",
	"save":             "",
	"timeout":          "0",
}

func (s *Server) config(name string) string {
	if value, ok := s.opts.Config[name]; ok {
		return value
	}
	return configuration[name]
}

func (c *conn) cmdConfig(args [][]byte) {
	if !is(args[1], "GET") {
		c.unknownSubcommand("CONFIG", args[1])
		return
	}
	if len(args) < 3 {
		c.wrongArity("config|get")
		return
	}
	found := make(map[string]string)
	for _, pattern := range args[2:] {
		for _, known := range []map[string]string{configuration, c.srv.opts.Config} {
			for name := range known {
				if ok, _ := path.Match(strings.ToLower(string(pattern)), name); ok {
					found[name] = c.srv.config(name)
				}
			}
		}
	}
	c.dict(len(found))
	for name, value := range found {
		c.text(name)
		c.text(value)
	}
}

// cmdCommand answers as little as needed by clients that ask before they use a command: names and
// arities.
func (c *conn) cmdCommand(args [][]byte) {
	switch {
	case len(args) == 1:
		var known []*command
		for _, cmd := range commands {
			if cmd.flavors.has(c.srv.opts.Flavor) {
				known = append(known, cmd)
			}
		}
		c.array(len(known))
		for _, cmd := range known {
			c.describe(cmd)
		}
	case is(args[1], "COUNT"):
		c.int(int64(len(commands)))
	case is(args[1], "DOCS"):
		c.dict(0)
	case is(args[1], "INFO"):
		c.array(len(args) - 2)
		for _, name := range args[2:] {
			c.describe(lookup(name, c.srv.opts.Flavor))
		}
	default:
		c.unknownSubcommand("COMMAND", args[1])
	}
}

func (c *conn) describe(cmd *command) {
	if cmd == nil {
		c.null()
		return
	}
	c.array(10)
	c.text(cmd.name)
	c.int(int64(cmd.arity))
	c.set(0) // flags
	c.int(0) // first key, last key, step
	c.int(0)
	c.int(0)
	c.set(0) // categories
	c.set(0) // tips
	c.set(0) // key specifications
	c.set(0) // subcommands
}
