package frontend

import (
	"context"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/server/grants"
	"github.com/redlock-go/redlock/internal/server/luascript"
	"github.com/redlock-go/redlock/internal/server/session"
)

// Config configures a Server. Client is required.
type Config struct {
	Client  *redlock.Client
	MaxTTL  time.Duration // the Client's MaxTTL
	Fenced  bool          // whether the Client is fenced
	NoTTL   time.Duration // grants locks without an expiry for this long; 0: refuses them
	Force   bool          // allows scripts to change a lock of any owner
	Users   Users         // nil: no password
	Scripts Scripts       // known by their hash
	Limits  session.Limits
	Logger  *slog.Logger // nil: none
	Name    string       // of the server, shown beside its locks
}

// Server is a front end. It is safe for concurrent use.
type Server struct {
	cfg      Config
	grants   *grants.Store
	scripts  *scripts
	users    atomic.Pointer[Users] // nil: no password
	sessions *session.Server
	channels channels
	stats    Stats
}

// Stats counts the work of a front end beside session.Stats.
type Stats struct {
	Unknown        atomic.Uint64 // unknown commands
	NoQuorum       atomic.Uint64 // replies with this code
	BadPassword    atomic.Uint64
	Scripts        [luascript.ForceExtend + 1]atomic.Uint64 // calls by class
	RefusedScripts atomic.Uint64
}

// EachClass calls f for each class of scripts, with the number of their calls.
func (s *Stats) EachClass(f func(class string, calls uint64)) {
	for class := range s.Scripts {
		f(luascript.Class(class).String(), s.Scripts[class].Load())
	}
}

// New returns a front end of the client.
func New(cfg Config) *Server {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{cfg: cfg, scripts: newScripts(cfg.Scripts), channels: channels{of: map[string]map[*conn]struct{}{}}}
	if cfg.Users != nil {
		s.users.Store(&cfg.Users)
	}
	s.grants = grants.New(grants.Config{Client: cfg.Client, MaxTTL: cfg.MaxTTL, NoTTL: cfg.NoTTL})
	s.sessions = session.New(cfg.Limits, func(id int64, addr net.Addr, push session.Push) session.Commands {
		return newConn(s, id, addr, push)
	})
	return s
}

// Serve accepts connections until Stop, and then returns nil. Any other result is the reason why it can accept no more.
func (s *Server) Serve(l net.Listener) error { return s.sessions.Serve(l) }

// Stop ends the front end: it cancels waits, answers commands under way until ctx ends, and
// releases locks kept for a connection. The Client stays open.
func (s *Server) Stop(ctx context.Context) {
	s.sessions.Stop(ctx)
	s.grants.Close()
}

// Held returns locks granted by this server, in the order of their keys: all, or a hundred if there are more.
func (s *Server) Held() []grants.HeldLock { return s.grants.Held(mostShown) }

// Stats returns the live counts.
func (s *Server) Stats() (*Stats, *session.Stats) { return &s.stats, s.sessions.Stats() }
