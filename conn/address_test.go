package conn

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// marked is the password in every test: where it shows, something leaks.
const marked = "S3CR3T"

func TestParseAddress(t *testing.T) {
	for text, want := range map[string]struct {
		network, host  string
		tls            bool
		database       int
		user, password string
	}{
		"localhost":                                {"tcp", "localhost:6379", false, 0, "", ""},
		"LocalHost:65535":                          {"tcp", "localhost:65535", false, 0, "", ""},
		"10.0.0.1:7000":                            {"tcp", "10.0.0.1:7000", false, 0, "", ""},
		"[::1]:7000":                               {"tcp", "[::1]:7000", false, 0, "", ""},
		"::1":                                      {"tcp", "[::1]:6379", false, 0, "", ""},
		"[fe80::1%eth0]":                           {"tcp", "[fe80::1%eth0]:6379", false, 0, "", ""},
		"redis://h":                                {"tcp", "h:6379", false, 0, "", ""},
		"redis://h:7000/3":                         {"tcp", "h:7000", false, 3, "", ""},
		"redis://h?db=4":                           {"tcp", "h:6379", false, 4, "", ""},
		"redis://user@h":                           {"tcp", "h:6379", false, 0, "user", ""},
		"redis://:pw@h":                            {"tcp", "h:6379", false, 0, "", "pw"},
		"redis://user:pw@h:1/2":                    {"tcp", "h:1", false, 2, "user", "pw"},
		"redis://us%40er:p%2Fw%3A%40@h":            {"tcp", "h:6379", false, 0, "us@er", "p/w:@"},
		"rediss://user:pw@h:6380/15":               {"tcp", "h:6380", true, 15, "user", "pw"},
		"rediss://[2001:DB8::1]:6380":              {"tcp", "[2001:db8::1]:6380", true, 0, "", ""},
		"valkey://user:pw@h:1/2":                   {"tcp", "h:1", false, 2, "user", "pw"},
		"valkeys://h":                              {"tcp", "h:6379", true, 0, "", ""},
		"REDIS://h":                                {"tcp", "h:6379", false, 0, "", ""},
		"unix:///run/redis.sock":                   {"unix", "/run/redis.sock", false, 0, "", ""},
		"unix://user:pw@/Run/Redis%20A.sock":       {"unix", "/Run/Redis A.sock", false, 0, "user", "pw"},
		"unix://:pw@/run/redis.sock?db=1":          {"unix", "/run/redis.sock", false, 1, "", "pw"},
		"rediss://" + marked + ":" + marked + "@h": {"tcp", "h:6379", true, 0, marked, marked},
	} {
		t.Run(text, func(t *testing.T) {
			a, err := parseAddress(text)
			require.NoError(t, err)
			got := want
			got.network, got.host, got.tls, got.database = a.Network, a.Host, a.TLS, a.Database
			got.user, got.password = a.Login()
			assert.Equal(t, want, got)
			assert.Equal(t, want.host, a.String())
		})
	}
}

func TestParseAddressRefuses(t *testing.T) {
	for _, text := range []string{
		"", "/run/" + marked, "user:" + marked + "@host:6379", ":" + marked + "@host", "host:" + marked, "host:0",
		"host:65536", "host:+1", "host:", ":6379", "[]:6379", "[::1", "[[::1]]", "[::1]:" + marked, "1:2:3",
		"host?db=1&" + marked, "host#" + marked, "ho\nst:6379", "redis://", "redis://user:" + marked + "@",
		"redis://user:" + marked + "@host:0", "redis://user:" + marked + "@host:",
		"redis://user:" + marked + "%zz@host", "redis://user:" + marked + "\x00@host",
		"redis://user:" + marked + "@ho st", "redis://user:" + marked + "@[::1",
		"redis://user:" + marked + "@host/-1", "redis://user:" + marked + "@host/1/2",
		"redis://user:" + marked + "@host?db=x", "redis://user:" + marked + "@host?" + marked + "=1",
		"redis://user:" + marked + "@host?%zz" + marked, "redis://user:" + marked + "@host?db=1;" + marked,
		"redis://user:" + marked + "@host#" + marked,
		// Passwords that ought to have been escaped.
		"redis://user:12/" + marked + "@host:6379", "redis://user:12?" + marked + "@host:6379",
		"redis://user:12#" + marked + "@host:6379", "redis://user:" + marked + "/1@host:6379",
		"redis://user:" + marked + "[1@host:6379", "http://user:" + marked + "@host", "://user:" + marked + "@host",
		marked + "://host", "unix://" + marked, "unix://", "unix://host/" + marked,
		"unix://user:" + marked + "@host/path", "unix:///path?" + marked + "=1",
		"unix://user:" + marked + "@/path?db=-1",
	} {
		t.Run(text, func(t *testing.T) {
			_, err := parseAddress(text)
			require.Error(t, err)
			assert.NotContains(t, err.Error(), marked)
			assert.NotContains(t, err.Error(), "host:6379")
			_, err = ParseAddresses([]string{"good", text})
			require.ErrorContains(t, err, "node 1")
			assert.NotContains(t, err.Error(), marked)
		})
	}
}

func TestParseAddressesRefusesDuplicates(t *testing.T) {
	for _, pair := range [][2]string{
		{"host", "host:6379"},
		{"host", "HOST"},
		{"host:1", "redis://user:" + marked + "@host:1"},
		{"redis://host/1", "redis://host/2"},
		{"redis://host", "rediss://host"},
		{"[::1]:1", "redis://[::1]:1"},
		{"[::1]:1", "[0:0::1]:1"},
		{"::ffff:10.0.0.1", "[::FFFF:a00:1]"},
		{"unix:///a", "unix://:" + marked + "@/a?db=1"},
		{"unix:///a/b", "unix:///a//./c/../b"},
	} {
		_, err := ParseAddresses([]string{"first", pair[0], pair[1]})
		if assert.Error(t, err, "%q", pair) {
			assert.Contains(t, err.Error(), "nodes 1 and 2")
			assert.NotContains(t, err.Error(), marked)
		}
	}
	as, err := ParseAddresses([]string{"host:1", "host:2", "unix:///host:1", "[::1]:1", "other:1"})
	require.NoError(t, err)
	assert.Len(t, as, 5)
}
