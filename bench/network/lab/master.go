package lab

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redlock-go/redlock/bench/network/history"
	"github.com/redlock-go/redlock/bench/network/host"
)

// master is a server on a host. It also has a socket in the file system: our way to look at it, which no fault of the network
// touches.
type master struct {
	host    *host.Host
	dir     string
	command []string
	cmd     *exec.Cmd
	client  *redis.Client
}

const port = 6379

func newMaster(h *host.Host, dir string, command []string) *master {
	m := &master{host: h, dir: dir, command: command}
	m.client = redis.NewClient(&redis.Options{
		Network: "unix", Addr: m.socket(), DialTimeout: 100 * time.Millisecond, ReadTimeout: 300 * time.Millisecond, MaxRetries: -1,
		DialerRetries: 1, PoolSize: 2, DisableIdentity: true,
	})
	return m
}

func (m *master) socket() string { return filepath.Join(m.dir, "socket") }

// start starts the server.
func (m *master) start() error {
	if err := os.MkdirAll(m.dir, 0o755); err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(m.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	m.cmd = exec.Command(m.command[0], append(m.command[1:],
		"--port", fmt.Sprint(port), "--bind", host.Address(m.host.Number), "--protected-mode", "no", "--save", "",
		"--dir", m.dir, "--unixsocket", m.socket())...)
	m.cmd.Stdout, m.cmd.Stderr = log, log
	return m.host.Start(m.cmd)
}

func (m *master) kill() {
	_ = m.cmd.Process.Signal(syscall.SIGCONT)
	_ = m.cmd.Process.Kill()
	_ = m.cmd.Wait()
}

// up waits until the server answers, and returns its product and version.
func (m *master) up(ctx context.Context) (string, error) {
	for {
		info, err := m.client.InfoMap(ctx, "server").Result()
		if err == nil {
			s := info["Server"]
			if v := s["valkey_version"]; v != "" {
				return "Valkey " + v, nil
			}
			return "Redis " + s["redis_version"], nil
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("master %d: %w", m.host.Number, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// keys are those that the server has now.
func (m *master) keys(ctx context.Context) (seen []history.Seen, err error) {
	names, err := m.client.Keys(ctx, "*").Result()
	if err != nil || len(names) == 0 {
		return nil, err
	}
	var ttls []*redis.DurationCmd
	_, _ = m.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, k := range names {
			ttls = append(ttls, p.PTTL(ctx, k))
		}
		return nil
	})
	now := history.Now()
	const gone = -2 // nanoseconds, as go-redis has it
	for i, k := range names {
		if ttls[i].Err() == nil && ttls[i].Val() != gone {
			seen = append(seen, history.Seen{At: now, Master: m.host.Number, Key: k, TTL: ttls[i].Val()})
		}
	}
	return seen, nil
}
