package fakeredis

import (
	"strings"
	"time"
)

// faults are a server's present faults.
type faults struct {
	delay     time.Duration
	thawed    chan struct{} // while no command is run; closed when that ends
	unread    bool          // nor is anything read
	mute      bool          // replies are kept
	rejection string        // the error for a new connection, before it is closed
	rules     []*rule
	pushes    PushFault
}

// rule is an injected Fault, and how often it still applies.
type rule struct {
	Fault
	on   *command // nil: every command
	left int      // negative: without end
}

// match finds the first rule for a command, and uses it up. cmd is nil for an unknown command.
func (f *faults) match(cmd *command) *Fault {
	for i, r := range f.rules {
		if r.on != nil && r.on != cmd {
			continue
		}
		if r.left > 0 {
			r.left--
		}
		if r.left == 0 {
			f.rules = append(f.rules[:i:i], f.rules[i+1:]...)
		}
		return &r.Fault
	}
	return nil
}

// Fault is a fault in the reply to a command.
type Fault struct {
	// On names the command, in any case. Empty means every one.
	On string
	// Do happens in place of the reply.
	Do Action
	// Raw is written by Instead: any bytes, whether or not they are a reply.
	Raw string
	// Applied: the command takes effect all the same.
	Applied bool
	// Times is how many are hit. Zero means all of them, until Heal.
	Times int
}

// Action happens in place of a reply.
type Action uint8

const (
	// Silence writes nothing and goes on.
	Silence Action = iota + 1
	// Instead writes the bytes of Fault.Raw.
	Instead
	// HangUp closes the connection, after the replies that come before.
	HangUp
	// Truncate runs the command in any case, writes the first half of its
	// reply, and cuts the connection off with a RST.
	Truncate
)

// Inject adds a fault. When several fit a command, the one injected first acts. It panics on a
// command unknown to all flavors: a test waiting for one would pass for the wrong reason.
func (s *Server) Inject(f Fault) {
	r := &rule{Fault: f, left: f.Times}
	if f.Times == 0 {
		r.left = -1
	}
	if f.On != "" {
		r.on = mustKnow(f.On)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults.rules = append(s.faults.rules, r)
}

// mustKnow finds a command by its name in any case.
func mustKnow(name string) *command {
	cmd := byName[strings.ToLower(name)]
	if cmd == nil {
		panic("fakeredis: there is no command " + name)
	}
	return cmd
}

// DropConn closes the connection in place of running a command. Here as below, an empty name means any
// command, and n = 0 means until Heal.
func (s *Server) DropConn(name string, n int) {
	s.Inject(Fault{On: name, Do: HangUp, Times: n})
}

// ResetMidReply runs a command, writes half of its reply, and sends a RST.
func (s *Server) ResetMidReply(name string, n int) {
	s.Inject(Fault{On: name, Do: Truncate, Applied: true, Times: n})
}

// WrongReply runs a command, but answers it with these bytes.
func (s *Server) WrongReply(name, raw string, n int) {
	s.Inject(Fault{On: name, Do: Instead, Raw: raw, Applied: true, Times: n})
}

// ErrorReply answers an error in place of running a command: its text starts with the code, such as
// "READONLY You can't write against a read only replica."
func (s *Server) ErrorReply(name, text string, n int) {
	s.Inject(Fault{On: name, Do: Instead, Raw: "-" + text + "\r\n", Times: n})
}

// sabotage applies a fault to a command.
func (c *conn) sabotage(f *Fault, cmd *command, args [][]byte) ending {
	start, how := len(c.out), endNot
	if f.Applied || f.Do == Truncate {
		how = c.answer(cmd, args)
	}
	reply := c.out[start:]
	switch f.Do {
	case Silence:
		c.out = c.out[:start]
	case Instead:
		c.out = append(c.out[:start], f.Raw...)
	case HangUp:
		c.out = c.out[:start]
		how = endClose
	case Truncate:
		c.out = c.out[:start+(len(reply)+1)/2]
		how = endReset
	}
	return how
}
