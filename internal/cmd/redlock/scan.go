package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/resp"
)

// The bounds of a search for keys: on its results, and on the time for a node.
const (
	maxFound = 10_000
	scanTime = 30 * time.Second
	maxText  = 1 << 20  // bytes of a text in a reply, and texts
	maxReply = 64 << 20 // bytes of a reply
)

// ofLibrary matches the keys used beside those of locks. A lock may still be called redlock:nightly.
var ofLibrary = regexp.MustCompile(`^redlock:fence|:redlock:(queue$|gate$|ticket:)`)

// isPattern reports whether an argument of held is a pattern of SCAN.
func isPattern(arg string) bool { return strings.Contains(arg, "*") }

// scan finds the keys that match a pattern. A lock is on a quorum. So nodes that leave out less than a quorum include
// one with the lock, and that many have to answer in each group. scan uses connections of its own: a client has no
// SCAN.
func (s *settings) scan(ctx context.Context, pattern string) ([]string, error) {
	groups, err := s.now.groups()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, scanTime)
	defer cancel()
	found := map[string]bool{}
	for _, group := range groups {
		nodes, err := conn.ParseAddresses(group)
		if err != nil {
			return nil, usage("-nodes: %v", err)
		}
		var mu sync.Mutex
		var all sync.WaitGroup
		errs := make([]error, len(nodes))
		for i, node := range nodes {
			all.Go(func() {
				errs[i] = s.scanNode(ctx, node, pattern, func(keys []string) bool {
					mu.Lock()
					defer mu.Unlock()
					for _, key := range keys {
						if !ofLibrary.MatchString(key) {
							found[key] = true
						}
					}
					return len(found) <= maxFound
				})
			})
		}
		all.Wait()
		answered := 0
		for _, err := range errs {
			if err == nil {
				answered++
			}
		}
		if len(found) > maxFound {
			return nil, usage("%q matches more than %d keys: narrow it", pattern, maxFound)
		}
		if quorum := len(nodes)/2 + 1; answered < len(nodes)-quorum+1 {
			return nil, &exit{exitNoQuorum, fmt.Errorf("too few nodes list their keys: %w", cmp.Or(errs...))}
		}
	}
	keys := make([]string, 0, len(found))
	for key := range found {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys, nil
}

// scanNode passes the keys of one node to take, until take has enough.
func (s *settings) scanNode(ctx context.Context, node conn.Address, pattern string, take func([]string) bool) error {
	nc, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, node.Network, node.Host)
	if err != nil {
		return err
	}
	defer nc.Close()
	defer context.AfterFunc(ctx, func() { _ = nc.SetDeadline(time.Unix(1, 0)) })()
	if node.TLS {
		cfg := new(tls.Config)
		if s.secure != nil {
			cfg = s.secure.get().Clone()
		}
		cfg.ServerName, _, _ = net.SplitHostPort(node.Host)
		nc = tls.Client(nc, cfg)
	}
	in := replies{nc: nc}
	ask := func(words ...string) ([]string, error) {
		command := resp.AppendArray(nil, len(words))
		for _, word := range words {
			command = resp.AppendBulkString(command, word)
		}
		if _, err := nc.Write(command); err != nil {
			return nil, err
		}
		reply, err := in.next()
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", node, words[0], err)
		}
		return reply, nil
	}
	if user, password := node.Login(); user+password != "" {
		login := []string{"AUTH", user, password}
		if user == "" {
			login = []string{"AUTH", password}
		}
		if _, err := ask(login...); err != nil {
			return err
		}
	}
	if node.Database != 0 {
		if _, err := ask("SELECT", strconv.Itoa(node.Database)); err != nil {
			return err
		}
	}
	for cursor := "0"; ; {
		reply, err := ask("SCAN", cursor, "MATCH", pattern, "COUNT", "1000")
		if err != nil {
			return err
		}
		if len(reply) == 0 {
			return fmt.Errorf("%s: SCAN: %w", node, errReply)
		}
		cursor = reply[0]
		if !take(reply[1:]) || cursor == "0" {
			return nil
		}
	}
}

var errReply = errors.New("unexpected reply to SCAN")

// replies reads the replies of one node.
type replies struct {
	nc      net.Conn
	in      []byte // not yet decoded
	decoder resp.Decoder
}

// next returns the texts of the next reply, in their order.
func (r *replies) next() ([]string, error) {
	r.decoder.Limits = resp.Limits{Bulk: maxText, Elements: maxText, Depth: 2}
	for {
		var v resp.Value
		n, err := r.decoder.Decode(r.in, &v)
		switch {
		case err == nil && v.IsError():
			return nil, errors.New(string(v.Bytes))
		case err == nil:
			all := textsOf(&v)
			r.in = append(r.in[:0], r.in[n:]...)
			return all, nil
		case err != resp.ErrIncomplete:
			return nil, err
		case len(r.in) > maxReply:
			return nil, conn.ErrOversized
		}
		r.in = slices.Grow(r.in, 1<<16)
		n, err = r.nc.Read(r.in[len(r.in):cap(r.in)])
		r.in = r.in[:len(r.in)+n]
		if n == 0 && err != nil {
			return nil, err
		}
	}
}

// textsOf returns the texts of a reply. The decoder has bounded its depth.
func textsOf(v *resp.Value) (all []string) {
	if v.Kind != resp.Array {
		return []string{string(v.Bytes)}
	}
	for it := v.Elements(); it.Next(); {
		all = append(all, textsOf(it.Value())...)
	}
	return all
}
