package frontend

import (
	"strconv"
	"sync"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/server/luascript"
	"github.com/redlock-go/redlock/internal/server/session"
)

// channels holds the subscribed connections: lock scripts publish when they release a lock. A message is a hint, as in
// Redis. It reaches the connections subscribed at this server, at this moment, with room for it. A waiting client still
// asks for the lock now and then.
type channels struct {
	mu    sync.Mutex
	of    map[string]map[*conn]struct{} // by the name, behind the prefix of the user
	bytes int                           // of the names, once for each subscription
}

// maxChannels bounds the channels of a connection, and maxChannelBytes the names of all
// subscriptions.
const (
	maxChannels     = 128
	maxChannelBytes = 8 << 20
)

// add subscribes a connection, and reports false if there are too many.
func (s *channels) add(c *conn, name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bytes+len(name) > maxChannelBytes {
		return false
	}
	if s.of[name] == nil {
		s.of[name] = map[*conn]struct{}{}
	}
	s.of[name][c] = struct{}{}
	s.bytes += len(name)
	return true
}

func (s *channels) remove(c *conn, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.of[name][c]; !ok {
		return
	}
	s.bytes -= len(name)
	delete(s.of[name], c)
	if len(s.of[name]) == 0 {
		delete(s.of, name)
	}
}

// publish sends messages to the subscribed connections.
func (s *channels) publish(prefix string, messages []luascript.Message) {
	for _, m := range messages {
		channel, text := string(m.Channel), string(m.Text)
		var to []*conn
		s.mu.Lock()
		for c := range s.of[prefix+channel] {
			to = append(to, c)
		}
		s.mu.Unlock()
		for _, c := range to {
			c.push(func(r *session.Reply) {
				if !c.channels[channel] {
					return // unsubscribed a moment ago: it would take this for a reply
				}
				r.SetRESP3(c.resp3)
				r.Push("message", channel, text)
			})
		}
	}
}

// inSubscription holds the commands of a subscribed connection with RESP2: it would take any other
// reply for a message.
var inSubscription = map[string]bool{"SUBSCRIBE": true, "UNSUBSCRIBE": true, "PING": true, "QUIT": true, "RESET": true}

func (c *conn) isSubscribed() bool { return len(c.channels) > 0 && !c.resp3 }

func (c *conn) subscribe(args []string, r *session.Reply) session.Plan {
	for _, name := range args[1:] {
		switch {
		case len(name) > redlock.MaxKey:
			r.Error("ERR the name of a channel has " + strconv.Itoa(len(name)) + " bytes, at most " + strconv.Itoa(redlock.MaxKey) + " are allowed")
			continue
		case c.channels[name]:
		case len(c.channels) >= maxChannels || !c.server.channels.add(c, c.prefix+name):
			r.Error("ERR too many channels: a connection may subscribe to " + strconv.Itoa(maxChannels) + ", and all to names of 8 MiB")
			continue
		}
		if c.channels == nil {
			c.channels = map[string]bool{}
		}
		c.channels[name] = true
		c.confirm(r, "subscribe", name)
	}
	return session.Plan{}
}

func (c *conn) patterns(args []string, r *session.Reply) session.Plan {
	c.fail(r, "", refusal("this server knows no patterns of channels: SUBSCRIBE to each channel in place of "+args[0]))
	return session.Plan{}
}

func (c *conn) unsubscribe(args []string, r *session.Reply) session.Plan {
	names := args[1:]
	if len(names) == 0 {
		for name := range c.channels {
			names = append(names, name)
		}
	}
	for _, name := range names {
		delete(c.channels, name)
		c.server.channels.remove(c, c.prefix+name)
		c.confirm(r, "unsubscribe", name)
	}
	if len(names) == 0 {
		r.Push("unsubscribe", nil, int64(0))
	}
	return session.Plan{}
}

// confirm writes the reply for one channel.
func (c *conn) confirm(r *session.Reply, what, name string) {
	r.Push(what, name, int64(len(c.channels)))
}

func (c *conn) unsubscribeAll() {
	for name := range c.channels {
		c.server.channels.remove(c, c.prefix+name)
	}
	c.channels = nil
}
