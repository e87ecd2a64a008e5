package floor

import (
	"bufio"
	"bytes"
	"context"
	"net"
	"time"

	"github.com/redlock-go/redlock/bench/harness"
)

// natives are the commands that delete a key where it holds a token: those of
// Valkey 9 and of Redis 8.4.
var natives = []func(key, token string) []byte{
	func(key, token string) []byte { return encode("DELIFEQ", key, token) },
	func(key, token string) []byte { return encode("DELEX", key, "IFEQ", token) },
}

// native tries which of them a server has.
func native(ctx context.Context, addr string) (releaser, error) {
	var dialer net.Dialer
	c, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	replies := bufio.NewReader(c)
	for _, one := range natives {
		if _, err := c.Write(one("floor:absent", "absent")); err != nil {
			return nil, err
		}
		line, err := replies.ReadString('\n')
		if err != nil {
			return nil, err
		}
		if line == ":0\r\n" {
			return eachBy(one), nil
		}
	}
	return nil, harness.Unsupported("the servers have no compare-and-delete command")
}

// eachBy releases one by one.
func eachBy(one func(key, token string) []byte) releaser {
	return func(keys, tokens []string) (request, reply []byte) {
		for i, key := range keys {
			request = append(request, one(key, tokens[i])...)
		}
		return request, bytes.Repeat([]byte(":1\r\n"), len(keys))
	}
}
