package main

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/test/realredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
)

// masters starts servers, and returns their addresses too.
func masters(t *testing.T, n int) (all []*realredis.Server, list string) {
	all = realredis.StartN(t, n, realredis.Options{Persistent: true})
	var addrs []string
	for _, s := range all {
		addrs = append(addrs, "redis://"+s.Addr()+"?persistent=yes") // they are new, and may vote at once
	}
	return all, strings.Join(addrs, ",")
}

// free returns an address that is free for now.
func free(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

// TestInstalled: an administrator installs the package on a machine with systemd, starts the server, gets a new package while a lock
// is held, and removes it.
func TestInstalled(t *testing.T) {
	r := makeRelease(t)
	all, nodes := masters(t, 5)
	m := boot(t)
	before := m.run("cat /etc/passwd /etc/group /etc/shadow")
	m.put("/old.deb", r.of(t, "0.0.9").find(t, ".deb"), 0o644)
	m.put("/new.deb", r.find(t, ".deb"), 0o644)

	began := time.Now()
	m.run("dpkg --force-unsafe-io -i /old.deb")
	require.Equal(t, "root:redlock 640", m.run("stat -c '%U:%G %a' /etc/redlock/redlock.conf"))
	_, err := m.try("setpriv --reuid=65534 --clear-groups cat /etc/redlock/redlock.conf")
	require.Error(t, err, "passwords are in it")
	require.Equal(t, "inactive", m.run("systemctl is-active redlock || true"), "it has no nodes yet")
	require.Empty(t, m.run("systemd-analyze verify --man=no redlock.service redlock-leader@report.service"))

	listen, metrics := free(t), free(t)
	settings := fmt.Sprintf("nodes %s\nlisten %s\nmetrics %s\n", nodes, listen, metrics)
	m.put("/etc/redlock/redlock.conf", []byte(settings), 0o640)
	m.run("systemctl enable --now redlock.service 2>&1")
	t.Logf("from the package to a server that is ready: %v", time.Since(began).Round(time.Millisecond))
	status := m.run("cat /proc/$(systemctl show -P MainPID redlock)/status")
	require.Contains(t, status, "NoNewPrivs:\t1\n")
	require.Contains(t, status, "Seccomp:\t2\n")
	require.Contains(t, status, "CapBnd:\t0000000000000000\n")
	require.Equal(t, "redlock", m.run("ps -o user= -p $(systemctl show -P MainPID redlock)"))
	m.run("systemctl reload redlock")
	m.run("systemctl kill -s KILL redlock") // it is back
	awaitReady(t, metrics)

	t.Run("stands still", func(t *testing.T) {
		m.run(`mkdir -p /run/systemd/system/redlock.service.d && printf '[Service]\nWatchdogSec=3s\n' >/run/systemd/system/redlock.service.d/short.conf
			systemctl daemon-reload && systemctl restart redlock`)
		awaitReady(t, metrics)
		m.run("systemctl kill -s STOP redlock")
		testkit.Await(t, "the watchdog has ended it", func() bool { return m.run("systemctl show -P NRestarts redlock") != "0" })
		awaitReady(t, metrics)
		m.run("rm -r /run/systemd/system/redlock.service.d && systemctl daemon-reload")
	})

	t.Run("bad settings", func(t *testing.T) {
		m.put("/etc/redlock/redlock.conf", []byte(settings+"nodez a\n"), 0o640)
		_, err := m.try("systemctl restart redlock")
		require.Error(t, err)
		require.Equal(t, "failed 64", m.run("echo $(systemctl is-active redlock) $(systemctl show -P ExecMainStatus redlock)"))
		m.put("/etc/redlock/redlock.conf", []byte(settings), 0o640)
		m.run("systemctl reset-failed redlock; systemctl start redlock")
		awaitReady(t, metrics)
	})

	m.put("/etc/redlock/leader.d/report", []byte("#!/bin/sh\nexec sleep 1d\n"), 0o755)
	m.run("systemctl start redlock-leader@report")
	testkit.Await(t, "a leader", func() bool { return leads(all) })

	// A new package, while a client holds a lock.
	require.Equal(t, "+OK\r\n", ask(listen, "SET", "job", "mine", "NX", "PX", "20000"))
	upgraded, longest := make(chan struct{}), make(chan time.Duration)
	go func() {
		var gap time.Duration
		for last := time.Now(); ; time.Sleep(20 * time.Millisecond) {
			if extend(listen) {
				gap, last = max(gap, time.Since(last)), time.Now()
			}
			select {
			case <-upgraded:
				longest <- gap
				return
			default:
			}
		}
	}()
	pid := m.run("systemctl show -P MainPID redlock")
	m.run("dpkg --force-unsafe-io -i /new.deb")
	require.Equal(t, "active active", m.run("echo $(systemctl is-active redlock redlock-leader@report)"))
	require.NotEqual(t, pid, m.run("systemctl show -P MainPID redlock"))
	awaitReady(t, metrics)
	require.True(t, extend(listen), "the lock is still held")
	close(upgraded)
	t.Logf("the longest time between two renewals, by the new package: %v", (<-longest).Round(time.Millisecond))
	require.Equal(t, "$-1\r\n", ask(listen, "SET", "job", "other", "NX", "PX", "900"))
	require.Equal(t, settings, m.run("cat /etc/redlock/redlock.conf")+"\n", "it is the administrator's")
	require.True(t, leads(all), "leaders are not restarted")

	m.run("dpkg -r redlock")
	require.Equal(t, []string{"/etc/redlock", "/etc/redlock/leader.d", "/etc/redlock/leader.d/report", "/etc/redlock/redlock.conf"}, slices.DeleteFunc(m.traces("redlock"), func(name string) bool { return strings.HasPrefix(name, "/var/lib/dpkg/") }))
	testkit.Await(t, "its lock is released", func() bool { return !leads(all) })
	m.run("rm -r /etc/redlock/leader.d; dpkg -P redlock")
	require.Empty(t, m.traces("redlock"))
	require.Equal(t, before, m.run("cat /etc/passwd /etc/group /etc/shadow"))
}

// leads reports whether a majority has the lock of the leader.
func leads(all []*realredis.Server) bool {
	n := 0
	for _, s := range all {
		if ask(s.Addr(), "EXISTS", "leader:report") == ":1\r\n" {
			n++
		}
	}
	return n >= 3
}

// ask sends a command on a connection of its own, and returns the reply, or "" without one.
func ask(addr string, words ...string) string {
	nc, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return ""
	}
	defer nc.Close()
	_ = nc.SetDeadline(time.Now().Add(time.Second))
	_, _ = nc.Write([]byte(testkit.Encode(words...)))
	answer := make([]byte, 64)
	n, _ := nc.Read(answer)
	return string(answer[:n])
}

// extend renews the lock of the test, and reports whether it is held.
func extend(addr string) bool { return ask(addr, "RL.EXTEND", "job", "mine", "20000") == ":20000\r\n" }

// awaitReady waits until a server can grant locks.
func awaitReady(t *testing.T, addr string) {
	t.Helper()
	testkit.Await(t, "/ready says 200", func() bool {
		answer, err := http.Get("http://" + addr + "/ready")
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	})
}

// TestImage: the image has what its program needs, and runs as its user in a root with nothing else.
func TestImage(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("another root wants root")
	}
	m, blobs := makeRelease(t), map[string][]byte{}
	_, nodes := masters(t, 3)
	for name, data := range untar(t, m.find(t, "_image.tar"), "") {
		blobs[strings.TrimPrefix(name, "blobs/sha256/")] = data
	}
	type descriptor struct{ MediaType, Digest string }
	follow := func(d descriptor, to any) {
		data := blobs[strings.TrimPrefix(d.Digest, "sha256:")]
		require.Equal(t, d.Digest, fmt.Sprintf("sha256:%x", sha256.Sum256(data)))
		require.NoError(t, json.Unmarshal(data, to))
	}
	var index struct{ Manifests []descriptor }
	require.NoError(t, json.Unmarshal(blobs["index.json"], &index))
	follow(index.Manifests[0], &index)
	var manifest struct {
		Config descriptor
		Layers []descriptor
	}
	follow(index.Manifests[0], &manifest)
	var image struct {
		Config struct {
			User            string
			Entrypoint, Cmd []string
			Env             []string
		}
		RootFS struct {
			DiffIDs []string `json:"diff_ids"`
		}
	}
	follow(manifest.Config, &image)
	require.Len(t, manifest.Layers, 1)
	layer := gunzip(t, blobs[strings.TrimPrefix(manifest.Layers[0].Digest, "sha256:")])
	require.Equal(t, image.RootFS.DiffIDs, []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer))})
	root := t.TempDir()
	files := untar(t, layer, root)
	require.Contains(t, string(files["etc/passwd"]), ":"+image.Config.User+":")
	require.True(t, x509.NewCertPool().AppendCertsFromPEM(files["etc/ssl/certs/ca-certificates.crt"]))

	require.NoError(t, os.Chmod(root, 0o755)) // of the test's folder, not of the image
	metrics := free(t)
	cmd := exec.Command(image.Config.Entrypoint[0], append(image.Config.Cmd, "-listen", free(t), "-metrics", metrics)...)
	var user, group uint32
	_, err := fmt.Sscanf(image.Config.User, "%d:%d", &user, &group)
	require.NoError(t, err)
	require.NotZero(t, user)
	cmd.Env = append(image.Config.Env, "REDLOCK_NODES="+nodes)
	cmd.Dir, cmd.Err = "/", nil // its path is one of the other root
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: user, Gid: group}}
	require.NoError(t, cmd.Start())
	awaitReady(t, metrics)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait(), "%s", &log)
}
