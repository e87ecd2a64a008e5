package quarantine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/base/clock"
)

// TestMemory shows meetings with a server 100 s apart, and when its vote then counts in a call with a lock of a second.
// The client's own locks have lived for up to 10 s. Nil stands for a server that answers as a replica.
func TestMemory(t *testing.T) {
	const never = 0
	at := func(meeting, seconds int) clock.Instant {
		return clock.Instant(time.Duration(100*meeting+seconds) * time.Second)
	}
	server := func(run, history, before string) *Server { return &Server{Run: run, History: history, Before: before} }
	up := func(s *Server, seconds int) *Server {
		s.Uptime = time.Duration(seconds) * time.Second
		return s
	}
	keeps := func(s *Server) *Server { s.Keeps = true; return s }
	own, strict := Bounds{Used: 10 * time.Second}, Bounds{All: time.Minute, Used: 10 * time.Second}
	for name, c := range map[string]struct {
		Bounds
		said  []*Server
		want  clock.Instant // after the last one
		cause Cause
	}{
		"first meeting":                         {own, []*Server{up(server("a", "h", ""), 1)}, never, None},
		"a connection ended":                    {own, []*Server{server("a", "h", ""), server("a", "h", "")}, never, None},
		"restarted":                             {own, []*Server{server("a", "h", ""), server("b", "i", "")}, at(2, 10), Restarted},
		"restarted before the last meeting":     {own, []*Server{server("a", "h", ""), server("b", "i", ""), server("b", "i", "")}, at(2, 10), Restarted},
		"restarted twice":                       {own, []*Server{server("a", "h", ""), server("b", "i", ""), server("c", "j", "")}, at(3, 10), Restarted},
		"no run_id any more":                    {own, []*Server{server("a", "h", ""), server("", "", "")}, at(2, 10), Restarted},
		"restarted, with a history":             {own, []*Server{server("a", "h", ""), server("b", "i", "h")}, at(2, 10), Restarted},
		"restarted with its data":               {own, []*Server{keeps(server("a", "h", "")), keeps(server("b", "i", ""))}, never, None},
		"restarted, and does not keep any more": {own, []*Server{keeps(server("a", "h", "")), server("b", "i", "")}, at(2, 10), Restarted},

		"promoted":                       {own, []*Server{server("a", "h", ""), server("a", "i", "x")}, at(2, 10), Promoted},
		"promoted, of its own history":   {own, []*Server{server("a", "h", ""), server("a", "i", "h")}, at(2, 10), Promoted},
		"promoted again":                 {own, []*Server{server("a", "h", ""), server("a", "i", "x"), server("a", "j", "x")}, at(3, 10), Promoted},
		"promoted before":                {own, []*Server{server("a", "i", "x"), server("a", "i", "x")}, never, None},
		"promoted, though it keeps":      {own, []*Server{keeps(server("a", "h", "")), keeps(server("a", "i", "x"))}, at(2, 10), Promoted},
		"a first replica, or a backup":   {own, []*Server{server("a", "h", ""), server("a", "i", "")}, never, None},
		"its replicas are gone for long": {own, []*Server{server("a", "h", "x"), server("a", "i", "")}, never, None},
		"it shows a history now":         {own, []*Server{server("a", "", ""), server("a", "h", "")}, never, None},

		"seen as a replica":                   {own, []*Server{server("a", "", ""), nil, server("a", "", "")}, at(3, 10), Promoted},
		"seen as a replica at first":          {own, []*Server{nil, server("a", "", "")}, at(2, 10), Promoted},
		"seen as a replica, though it keeps":  {own, []*Server{keeps(server("a", "", "")), nil, keeps(server("a", "", ""))}, at(3, 10), Promoted},
		"seen as a replica, of a new process": {own, []*Server{server("a", "", ""), nil, server("b", "", "")}, at(3, 10), Promoted},

		"strict, new":                         {strict, []*Server{up(server("a", "h", ""), 0)}, at(1, 60), Unmet},
		"strict, up for a while":              {strict, []*Server{up(server("a", "h", ""), 21)}, at(1, 40), Unmet},
		"strict, up for long":                 {strict, []*Server{up(server("a", "h", ""), 61)}, at(1, 0), Unmet},
		"strict, keeps":                       {strict, []*Server{up(keeps(server("a", "h", "")), 1)}, never, None},
		"strict, promoted at any time before": {strict, []*Server{up(server("a", "i", "x"), 1000)}, at(1, 60), Promoted},
		"strict, promoted, though it keeps":   {strict, []*Server{up(keeps(server("a", "i", "x")), 1000)}, at(1, 60), Promoted},
		"strict, restarted":                   {strict, []*Server{up(server("a", "h", ""), 100), server("b", "h", "")}, at(2, 60), Restarted},
	} {
		var m Memory
		for i, s := range c.said {
			if s == nil {
				m.SawReplica()
				continue
			}
			m.Meets(*s, c.Bounds, at(i+1, 0))
		}
		require.Equal(t, c.want, m.Due(time.Second), name)
		require.Equal(t, c.cause, m.Cause, name)
	}
}
