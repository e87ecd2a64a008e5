package conn

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path"
	"strconv"
	"strings"
)

const defaultPort = "6379"

// Address is the network address of a node, with the credentials for it.
type Address struct {
	Network  string // "tcp" or "unix"
	Host     string // "host:port", or the socket's path
	TLS      bool
	Database int
	// Persistent: the node forgets nothing in a restart (appendonly yes with appendfsync always), so its vote counts
	// again at once.
	Persistent bool

	// login is nil without credentials. It is a function because package fmt prints unexported fields, and follows
	// pointers for a wrong verb, but prints no closure.
	login func() (user, password string)
}

// Login returns the credentials, or two empty strings.
func (a Address) Login() (user, password string) {
	if a.login == nil {
		return "", ""
	}
	return a.login()
}

// parseAddress reads one address. Its errors never quote the text: it may hold a password.
func parseAddress(s string) (Address, error) {
	if s == "" {
		return Address{}, errors.New("address is empty")
	}
	if !strings.Contains(s, "://") {
		if strings.ContainsAny(s, "/@?#") || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' }) {
			return Address{}, errors.New(`address must be "host:port" or a URL`)
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
		user := u.User.Username()
		password, _ := u.User.Password()
		a.login = func() (string, string) { return user, password }
	}
	database := strings.Trim(u.Path, "/")
	switch u.Scheme {
	case "redis", "rediss", "valkey", "valkeys":
		a.TLS = u.Scheme == "rediss" || u.Scheme == "valkeys"
		if a.Host, err = hostPort(u.Host); err != nil {
			return Address{}, err
		}
	case "unix":
		a.Network, a.Host, database = "unix", path.Clean(u.Path), ""
		if u.Host != "" || u.Path == "" {
			return Address{}, errors.New("unix address needs an absolute path: unix:///path/to/socket")
		}
	default:
		return Address{}, errors.New("address scheme must be redis, rediss, valkey, valkeys or unix")
	}
	if u.Fragment != "" {
		return Address{}, errors.New("address has a #: write it as %23 in a password")
	}
	options, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return Address{}, errors.New("address options are not valid")
	}
	for key := range options {
		if key != "db" && key != "persistent" { // not quoted either: a ? in a password ends up here
			return Address{}, errors.New("address has an option other than db and persistent: write ? as %3F in a password")
		}
	}
	switch options.Get("persistent") {
	case "yes":
		a.Persistent = true
	case "", "no":
	default:
		return Address{}, errors.New("address option persistent must be yes or no")
	}
	if db := options.Get("db"); db != "" {
		database = db
	}
	if database != "" {
		n, err := strconv.ParseUint(database, 10, 31)
		if err != nil {
			return Address{}, errors.New("address database is not a whole number from 0")
		}
		a.Database = int(n)
	}
	return a, nil
}

// ParseAddresses reads the addresses of a fleet, each in one of the forms
//
//	host:port   host   [::1]:6379
//	redis://[user[:password]@]host[:port][/database]
//	rediss://…  the same over TLS; valkey:// and valkeys:// are other spellings of the two
//	unix:///path/to/socket[?db=database]   unix://user:password@/path
//
// In a password write / as %2F, ? as %3F, # as %23 and % as %25. A URL may end in ?persistent=yes, to set Persistent.
// Two addresses of one server are an error, with any database: it would vote twice. Errors never quote an address: it
// may hold a password.
func ParseAddresses(texts []string) ([]Address, error) {
	addresses := make([]Address, len(texts))
	seen := make(map[string]int, len(texts))
	for i, text := range texts {
		a, err := parseAddress(text)
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
		host, port = s, defaultPort
		if strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]") {
			host = s[1 : len(s)-1]
		}
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		host = ip.Unmap().String() // one spelling, or a duplicate is not seen
	} else if strings.ContainsAny(host, ":[]") {
		return "", errors.New("address host and port cannot be separated")
	} else {
		host = strings.ToLower(host)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", errors.New("address port is not a number from 1 to 65535")
	}
	if host == "" {
		return "", errors.New("address has no host")
	}
	return net.JoinHostPort(host, port), nil
}

// Equal reports whether a and b are one node, with the same credentials and options.
func (a Address) Equal(b Address) bool {
	user, password := a.Login()
	user2, password2 := b.Login()
	return a.Network == b.Network && a.Host == b.Host && a.TLS == b.TLS && a.Database == b.Database &&
		a.Persistent == b.Persistent && user == user2 && password == password2
}

// String names the node without credentials.
func (a Address) String() string { return a.Host }
