package fakeredis

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/realredis"
	"github.com/redlock-go/redlock/internal/script"
)

const pipelined = 64

// lockRound returns a pipeline that acquires and releases as many locks as
// there are in one batch, and what is answered.
func lockRound(prefix string) (commands, replies []byte) {
	var sets, want strings.Builder
	release := []string{"EVALSHA", script.ReleaseSHA1, fmt.Sprint(pipelined)}
	var tokens []string
	for i := range pipelined {
		key, token := fmt.Sprintf("%s:%d", prefix, i), fmt.Sprintf("token-%016d", i)
		sets.WriteString(encode("SET", key, token, "NX", "PX", "10000"))
		want.WriteString("+OK\r\n")
		release, tokens = append(release, key), append(tokens, token)
	}
	fmt.Fprintf(&want, "*%d\r\n%s", pipelined, strings.Repeat(":1\r\n", pipelined))
	return []byte(sets.String() + encode(append(release, tokens...)...)), []byte(want.String())
}

// exchange writes commands and reads the replies, which must be those wanted.
func exchange(nc net.Conn, commands, replies, want []byte) error {
	if _, err := nc.Write(commands); err != nil {
		return err
	}
	if _, err := io.ReadFull(nc, replies); err != nil {
		return err
	}
	if !bytes.Equal(replies, want) {
		return fmt.Errorf("answered %q", replies)
	}
	return nil
}

// BenchmarkLocks measures pairs of acquiring and releasing one lock, 64 of
// them in a round trip, on the fake and on a real server.
func BenchmarkLocks(b *testing.B) {
	for _, clients := range []int{1, 4} {
		b.Run(fmt.Sprintf("fake/clients=%d", clients), func(b *testing.B) {
			s := StartN(b, 1)[0]
			s.LoadScripts()
			benchmarkLocks(b, clients, s.Addr())
		})
		b.Run(fmt.Sprintf("real/clients=%d", clients), func(b *testing.B) {
			s := realredis.Start(b)
			c := dial(b, "tcp", s.Addr())
			c.send(encode("SCRIPT", "LOAD", script.Release))
			require.Equal(b, `"`+script.ReleaseSHA1+`"`, c.receive())
			benchmarkLocks(b, clients, s.Addr())
		})
	}
}

func benchmarkLocks(b *testing.B, clients int, addr string) {
	conns := make([]net.Conn, clients)
	for i := range conns {
		conns[i] = dial(b, "tcp", addr).nc
	}
	b.ReportAllocs()
	b.ResetTimer()
	done := make(chan struct{})
	for i, nc := range conns {
		go func() {
			defer func() { done <- struct{}{} }()
			commands, want := lockRound(fmt.Sprint("bench", i))
			replies := make([]byte, len(want))
			for n := i * pipelined; n < b.N; n += clients * pipelined {
				if err := exchange(nc, commands, replies, want); err != nil {
					b.Error(err)
					return
				}
			}
		}()
	}
	for range conns {
		<-done
	}
}

// BenchmarkRoundTrip measures one command at a time.
func BenchmarkRoundTrip(b *testing.B) {
	s := StartN(b, 1)[0]
	nc := dial(b, "tcp", s.Addr()).nc
	commands, want := []byte(encode("SET", "key", "token", "PX", "10000")), []byte("+OK\r\n")
	replies := make([]byte, len(want))
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		if err := exchange(nc, commands, replies, want); err != nil {
			b.Fatal(err)
		}
	}
}
