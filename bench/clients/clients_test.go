package main

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/test/port"
	"github.com/redlock-go/redlock/internal/test/realredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
)

// client is a library in a language.
type client struct{ language, library string }

var all = []client{
	{"go", "redsync-goredis"}, {"go", "redsync-redigo"}, {"go", "redislock"}, {"go", "rueidislock"},
	{"node", "ioredis"}, {"node", "ioredis6"}, {"node", "redis4"}, {"node", "redis6"}, {"node", "redlock4"}, {"node", "redlock5"},
	{"node", "redlock5-several"}, {"node", "sesamecare"}, {"node", "sesamecare-several"},
	{"node", "redis-semaphore"}, {"node", "ioredis-lock"}, {"node", "redlock-universal"},
	{"python", "redis-py"}, {"python", "redis-py-asyncio"}, {"php", "symfony"}, {"ruby", "redis-rb"},
}

// programs are the programs of the languages that are installed here: see install.
type programs map[string][]string

// install builds the programs, and installs what they need from the ordinary registries. A language
// that cannot be had is left out, which is reported.
func install(t *testing.T) (p programs, server string) {
	dir := t.TempDir()
	must := func(name string, args ...string) {
		out, err := exec.Command(name, args...).CombinedOutput()
		require.NoError(t, err, "%s %q: %s", name, args, out)
	}
	must("go", "build", "-o", filepath.Join(dir, "client"), ".")
	server = filepath.Join(dir, "redlock")
	must("go", "build", "-o", server, "github.com/redlock-go/redlock/internal/cmd/redlock")
	p = programs{"go": {filepath.Join(dir, "client")}}

	for language, words := range map[string]struct{ install, run []string }{
		"node": {[]string{"npm", "ci", "--prefix", "node", "--no-audit", "--no-fund", "--legacy-peer-deps"}, []string{"node", "node/client.mjs"}},
		"python": {[]string{"bash", "-ec", `
			cd "$1" && apt-get -o APT::Sandbox::User=root download -qq python3-redis python3-deprecated python3-wrapt python3-packaging python3-async-timeout
			for d in *.deb; do dpkg -x "$d" .; done
			PYTHONPATH=usr/lib/python3/dist-packages /usr/bin/python3 -c 'import redis'`, "-", dir},
			[]string{"env", "PYTHONPATH=" + dir + "/usr/lib/python3/dist-packages", "/usr/bin/python3", "python/client.py"}},
		// Debian's php-cli, php-redis and php-symfony-lock; ruby and ruby-redis
		"php":  {[]string{"php", "-r", "require '/usr/share/php/Symfony/Component/Lock/autoload.php'; new Redis();"}, []string{"php", "php/client.php"}},
		"ruby": {[]string{"ruby", "-e", "require 'redis'"}, []string{"ruby", "ruby/client.rb"}},
	} {
		if out, err := exec.Command(words.install[0], words.install[1:]...).CombinedOutput(); err != nil {
			t.Logf("without the clients of %s: %v: %s", language, err, out)
		} else {
			p[language] = words.run
		}
	}
	return p, server
}

// command is a run of a client.
func (p programs) command(c client, args ...string) *exec.Cmd {
	words := append(append([]string{}, p[c.language]...), c.library)
	return exec.Command(words[0], append(words[1:], args...)...)
}

// urls returns the addresses as those of masters that forget nothing, which is right as long as none
// is started again: else a front end that is started again has no vote from them for MaxTTL.
func urls(servers []*realredis.Server) (nodes []string) {
	for _, s := range servers {
		nodes = append(nodes, "redis://"+s.Addr()+"?persistent=yes")
	}
	return nodes
}

// frontEnd is a process of redlock serve.
type frontEnd struct {
	t       *testing.T
	program string
	address string
	nodes   []string
	more    []string // settings
	process *exec.Cmd
}

func serve(t *testing.T, program string, nodes []string, more ...string) *frontEnd {
	p, err := port.Free()
	require.NoError(t, err)
	f := &frontEnd{t: t, program: program, address: p.Addr(), nodes: nodes, more: more}
	f.start()
	t.Cleanup(func() {
		f.kill()
		_ = p.Close()
	})
	return f
}

// start starts it with a timeout that suits a machine which does other work beside.
func (f *frontEnd) start() {
	f.process = exec.Command(f.program, append([]string{"serve", "-listen", f.address, "-node-timeout", "5s", "-nodes", strings.Join(f.nodes, ",")}, f.more...)...)
	f.process.Stderr = &bytes.Buffer{}
	require.NoError(f.t, f.process.Start())
	testkit.Await(f.t, "the front end listens", func() bool {
		c, err := net.Dial("tcp", f.address)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}

func (f *frontEnd) kill() {
	_ = f.process.Process.Kill()
	_ = f.process.Wait()
}

// TestClients: each library acquires, is refused, extends, releases, and sees a lock expire, against
// one front end of 3 and of 5 masters, of which one is stopped.
func TestClients(t *testing.T) {
	p, program := install(t)
	for _, n := range []int{3, 5} {
		servers := realredis.StartN(t, n, realredis.Options{Persistent: true})
		f := serve(t, program, urls(servers))
		require.NoError(t, servers[n-1].Kill())
		t.Run(map[int]string{3: "3 masters", 5: "5 masters"}[n], func(t *testing.T) {
			for _, c := range all {
				t.Run(c.library, func(t *testing.T) {
					if p[c.language] == nil {
						t.Skip(c.language + " cannot be had")
					}
					t.Parallel()
					out, err := p.command(c, f.address, "cycle", "lock:"+c.library).CombinedOutput()
					require.NoError(t, err, "%s", out)
					require.Equal(t, "ok\n", string(out))
				})
			}
		})
		if t.Failed() {
			t.Logf("%s", f.process.Stderr)
		}
	}
}

// TestCases: what redis-py promises of its locks holds at one master, and at a front end of three.
func TestCases(t *testing.T) {
	p, program := install(t)
	if p["python"] == nil {
		t.Skip("python cannot be had")
	}
	servers := realredis.StartN(t, 4, realredis.Options{Persistent: true})
	f := serve(t, program, urls(servers[:3]), "-no-ttl", "30s")
	cases := append(p["python"][:len(p["python"])-1:len(p["python"])-1], "python/cases.py")
	for _, address := range []string{servers[3].Addr(), f.address} {
		out, err := exec.Command(cases[0], append(cases[1:], address)...).CombinedOutput()
		t.Logf("%s: %s", address, out)
		require.NoError(t, err)
	}
}

// TestExclusion: clients of several languages and libraries contend for one key through three front
// ends, each of which is killed and started again in turn, while masters are stopped in turn; one
// contender is the library itself. No two ever hold the lock at once.
func TestExclusion(t *testing.T) {
	seconds := "12"
	if testkit.Long() {
		seconds = "60"
	}
	length, err := time.ParseDuration(seconds + "s")
	require.NoError(t, err)
	p, program := install(t)
	servers := realredis.StartN(t, 5, realredis.Options{Persistent: true})
	nodes := urls(servers)
	fronts := []*frontEnd{serve(t, program, nodes), serve(t, program, nodes), serve(t, program, nodes)}

	file := filepath.Join(t.TempDir(), "held")
	var runs []*exec.Cmd
	contenders := []client{{"go", "redlock"}, {"go", "redsync-goredis"}, {"go", "redislock"}, {"node", "redlock5"}, {"node", "redlock4"}, {"python", "redis-py"}, {"php", "symfony"}, {"ruby", "redis-rb"}}
	for i, c := range contenders {
		if p[c.language] == nil {
			continue
		}
		address := fronts[i%3].address
		if c.library == "redlock" {
			address = strings.Join(nodes, ",")
		}
		run := p.command(c, address, "contend", "lock", file, seconds)
		run.Stdout, run.Stderr = &bytes.Buffer{}, os.Stderr
		require.NoError(t, run.Start())
		runs = append(runs, run)
	}
	began := time.Now()
	for i := 1; ; i++ {
		if next := time.Duration(i) * 2500 * time.Millisecond; next >= length {
			break
		} else {
			time.Sleep(time.Until(began.Add(next)))
		}
		front := fronts[i%3]
		front.kill()
		front.start()
		master := servers[rand.IntN(len(servers))]
		require.NoError(t, master.Stop())
		time.Sleep(time.Duration(200+rand.IntN(800)) * time.Millisecond)
		require.NoError(t, master.Cont())
	}
	total := counts{}
	for i, run := range runs {
		require.NoError(t, run.Wait())
		var c counts
		out := run.Stdout.(*bytes.Buffer).Bytes()
		require.NoError(t, json.Unmarshal(out, &c), "%s", out)
		t.Logf("%v: %+v", contenders[i], c)
		require.Positive(t, c.Grants, contenders[i])
		total.Grants, total.Overlaps, total.Errors = total.Grants+c.Grants, total.Overlaps+c.Overlaps, total.Errors+c.Errors
	}
	t.Logf("in all %+v", total)
	require.Zero(t, total.Overlaps)
}
