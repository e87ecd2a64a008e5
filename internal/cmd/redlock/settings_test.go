package main

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/base/errno"
)

// read reads the settings of a command from arguments, variables and the text of a file.
func read(t *testing.T, sub, args, vars, file string) (*settings, string, error) {
	t.Helper()
	c := &command{vars: map[string]string{}}
	for _, v := range strings.Fields(vars) {
		name, text, _ := strings.Cut(v, "=")
		c.vars[name] = text
	}
	if file != "" {
		path := filepath.Join(t.TempDir(), "redlock.conf")
		require.NoError(t, os.WriteFile(path, []byte(file), 0o600))
		args += " -config " + path
	}
	s := newSettings(c.environment(), sub, "")
	_, err := s.parse(strings.Fields(args))
	return s, c.err.String(), err
}

// TestSettings: a flag takes precedence over a variable, and a variable over the file, which has the settings of all
// commands. No misspelling passes.
func TestSettings(t *testing.T) {
	s, log, err := read(t, "serve", "-max-ttl 2m -fenced", "REDLOCK_MAX_TTL=3m REDLOCK_DRAIN=7s REDLOCK_TTL=4s REDLOCK_YES= REDLOCK_PORT=tcp://10.0.0.1:80 REDLOCK_TOKEN=x REDLOCK_A_PORT_80_TCP_ADDR=x",
		"\xEF\xBB\xBF# redlock\r\nmax-ttl 4m\r\n\tdrain 8s\nttl 5s\n\nno-ttl\t1s\r\nname  a b \njson no\n")
	require.NoError(t, err)
	require.Empty(t, log)
	require.Equal(t, 2*time.Minute, s.maxTTL)
	require.True(t, s.fenced)
	require.Equal(t, 7*time.Second, s.serve.drain)
	require.Equal(t, time.Second, s.serve.noTTL)
	require.Equal(t, 500*time.Millisecond, s.nodeTimeout)
	require.Equal(t, "a b", s.name)
	require.Equal(t, 10*time.Second, s.run.ttl, "of another command")
	s, _, err = read(t, "run", "", "", "")
	require.NoError(t, err)
	require.Equal(t, 500*time.Millisecond, s.nodeTimeout, "a job on a busy machine, too")

	for _, c := range []struct{ vars, file, want string }{
		{"", "name x\nmax_ttl 1m\n", `redlock.conf, line 2: "max_ttl" is no setting: did you mean max-ttl?`},
		{"", "max-ttl=1m\n", `line 1: write "max-ttl" and its value with a space between, not =`},
		{"", "max-ttl = 1m\n", "not ="},
		{"", "max-ttl 1m\n\nname x\nmax-ttl 1m\n", "line 4: max-ttl is given twice, first in line 1"},
		{"", "max-ttl\n", "line 1: max-ttl has no value"},
		{"", "\nttl soon\n", "line 2: ttl has a wrong value: want a duration"},
		{"", "fenced maybe\n", "want yes or no"},
		{"", "ttl 5s\nnodes \"a,b,c\"\n", "redlock.conf, line 2: write the value of nodes without quotes"},
		{"", "nodes redis://:hunter2@a b,c\n", "redlock.conf, line 1: nodes has a wrong value: node 0: address is not a valid URL"},
		{"", "frobnicate 1\n", `"frobnicate" is no setting`},
		{"", "config /etc/x\n", `"config" cannot be set here: give -config as a flag`},
		{"", "yes yes\n", `"yes" is no setting of serve, but of break`},
		{"REDLOCK_MAX_TLL=1m", "", "REDLOCK_MAX_TLL is no setting: did you mean max-ttl?"},
		{"REDLOCK_MAXTTL=1m", "", "did you mean max-ttl?"},
		{"REDLOCK_MAX_TTL=soon", "", "REDLOCK_MAX_TTL has a wrong value"},
		{"REDLOCK_CONFIG=/none", "", "-config: open /none"},
	} {
		_, _, err := read(t, "serve", "", c.vars, c.file)
		require.ErrorContains(t, err, c.want, "%s %q", c.vars, c.file)
		status := (*exit)(nil)
		require.ErrorAs(t, err, &status)
		require.Equal(t, exitUsage, status.status)
	}
	_, log, err = read(t, "serve", "", "REDLOCK_FROBNICATE=1 REDLOCK_LONG=1", "")
	require.NoError(t, err)
	require.Equal(t, 2, strings.Count(log, "a variable is no setting: REDLOCK_"), log)
}

// TestTable: each setting has one row for each of its commands, a destination of its own for the value, a valid
// default, and help.
func TestTable(t *testing.T) {
	commands := map[string]bool{}
	for _, sub := range subcommands {
		commands[sub.name] = true
	}
	places := map[any]string{}
	s := newSettings(&environment{}, "serve", "")
	for i := range table {
		row := &table[i]
		for command := range strings.FieldsSeq(row.of) {
			require.True(t, commands[command], command)
			require.Same(t, row, find(row.name, command), "%s of %s has two rows", row.name, command)
		}
		require.NotEmpty(t, row.help)
		require.NoError(t, row.set(s, cmp.Or(row.byDefault, "0")), row.name)
		at := row.at(s)
		require.Contains(t, []string{"", row.name}, places[at])
		places[at] = row.name
	}
}

// TestSecrets: a file with passwords is read by its owner alone, or by a group of root's choice.
func TestSecrets(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no mode")
	}
	const secret = "nodes redis://:hunter2@127.0.0.1:1\n"
	for _, c := range []struct {
		mode   os.FileMode
		owner  int
		text   string
		wanted string
	}{
		{0o600, 0, secret, ""}, {0o400, 1000, secret, ""}, {0o440, 0, secret, ""}, {0o640, 0, secret, ""},
		{0o644, 0, secret, "has passwords, and other users of this machine can read it: chmod 600 it"},
		{0o604, 0, secret, "other users"}, {0o640, 1000, secret, "its group can read it"}, {0o660, 0, secret, "its group can write it"},
		{0o644, 0, "nodes redis://127.0.0.1:1\n", ""},
	} {
		path := filepath.Join(t.TempDir(), "redlock.conf")
		require.NoError(t, os.WriteFile(path, []byte(c.text), 0o600))
		require.NoError(t, os.Chmod(path, c.mode))
		if err := os.Chown(path, c.owner, c.owner); errors.Is(err, os.ErrPermission) {
			t.Skip("needs root")
		}
		_, _, err := read(t, "nodes", "-config "+path, "", "")
		if c.wanted == "" {
			require.NoError(t, err, "%o of %d", c.mode, c.owner)
		} else {
			require.ErrorContains(t, err, c.wanted)
			require.NotContains(t, fmt.Sprint(err), "hunter2")
		}
	}
}

// TestSocket: a socket of a killed process is replaced. A served socket, and a file, are not.
func TestSocket(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("sockets have no mode")
	}
	path := filepath.Join(t.TempDir(), "s")
	l, err := listen("listen", path, 0o620)
	require.NoError(t, err)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o620), info.Mode().Perm())
	_, err = listen("listen", path, 0)
	require.ErrorIs(t, err, errno.AddrInUse)
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	require.NoError(t, l.Close())
	l, err = listen("listen", path, 0)
	require.NoError(t, err)
	require.NoError(t, l.Close())
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	_, err = listen("listen", path, 0)
	require.ErrorIs(t, err, errno.AddrInUse)
	require.FileExists(t, path)
}
