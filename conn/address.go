package conn

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

const defaultPort = "6379"

// Address is where a node is and who we are there.
type Address struct {
	Network  string // "tcp" or "unix"
	Host     string // "host:port", or the socket's path
	TLS      bool
	Database int

	user, password string
}

// ParseAddress reads one of
//
//	host:port   host   [::1]:6379
//	redis://[user[:password]@]host[:port][/database]
//	rediss://…  the same over TLS
//	unix:///path/to/socket[?db=database]   unix://user:password@/path
//
// Its errors never quote the text, which may hold a password.
func ParseAddress(s string) (Address, error) {
	if s == "" {
		return Address{}, errors.New("address is empty")
	}
	if !strings.Contains(s, "://") {
		if strings.ContainsAny(s, "/@ ") {
			return Address{}, errors.New(`address is neither "host:port" nor a URL`)
		}
		host, err := hostPort(s)
		return Address{Network: "tcp", Host: host}, err
	}
	u, err := url.Parse(s)
	if err != nil {
		return Address{}, errors.New("address is not a valid URL") // err quotes it
	}
	a := Address{Network: "tcp"}
	if u.User != nil {
		a.user = u.User.Username()
		a.password, _ = u.User.Password()
	}
	database := strings.Trim(u.Path, "/")
	switch u.Scheme {
	case "redis", "rediss":
		a.TLS = u.Scheme == "rediss"
		if a.Host, err = hostPort(u.Host); err != nil {
			return Address{}, err
		}
	case "unix":
		a.Network, a.Host, database = "unix", u.Path, ""
		if u.Host != "" || u.Path == "" {
			return Address{}, errors.New("unix address needs an absolute path: unix:///path/to/socket")
		}
	default:
		return Address{}, errors.New("address scheme is none of redis, rediss and unix")
	}
	for key := range u.Query() {
		if key != "db" {
			return Address{}, fmt.Errorf("address option %.32q is unknown; there is only db", key)
		}
	}
	if db := u.Query().Get("db"); db != "" {
		database = db
	}
	if database != "" {
		if a.Database, err = strconv.Atoi(database); err != nil || a.Database < 0 {
			return Address{}, errors.New("address database is not a whole number from 0")
		}
	}
	return a, nil
}

// ParseAddresses reads the addresses of a fleet, no two of which may be of the
// same server, whatever the database: it would vote twice.
func ParseAddresses(texts []string) ([]Address, error) {
	addresses := make([]Address, len(texts))
	seen := make(map[string]int, len(texts))
	for i, text := range texts {
		a, err := ParseAddress(text)
		if err != nil {
			return nil, fmt.Errorf("node %d: %w", i, err)
		}
		if first, twice := seen[a.Host]; twice {
			return nil, fmt.Errorf("nodes %d and %d are both %s: a node must not vote twice", first, i, a)
		}
		seen[a.Host] = i
		addresses[i] = a
	}
	return addresses, nil
}

// hostPort completes host with the default port.
func hostPort(s string) (string, error) {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		// No port, or no brackets round an IPv6 address.
		host, port = strings.Trim(s, "[]"), defaultPort
		if strings.Contains(host, ":") && net.ParseIP(host) == nil {
			return "", errors.New("address host and port cannot be told apart")
		}
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", errors.New("address port is not a number from 1 to 65535")
	}
	if host == "" {
		return "", errors.New("address has no host")
	}
	return net.JoinHostPort(strings.ToLower(host), port), nil
}

// String names the node without credentials.
func (a Address) String() string { return a.Host }

// GoString is String, so that %#v tells no password either.
func (a Address) GoString() string { return strconv.Quote(a.Host) }
