package frontend

import "github.com/redlock-go/redlock/internal/server/session"

// Reload replaces the present users and scripts, if there are any. Connections and their locks stay, except the ones of
// a user that is gone or has another prefix now: these end. A new password ends none.
//
// A login reads the users, and notes its own, while it holds its connection. The new users are in place before Reload
// looks at any connection. So either a login is by the new users, or its connection is looked at after it.
func (s *Server) Reload(users Users, scripts Scripts) {
	s.scripts.list(scripts)
	if users == nil {
		return
	}
	s.users.Store(&users)
	s.sessions.End(func(of session.Commands) bool {
		c := of.(*conn)
		user, known := users[c.user]
		return c.allowed && (!known || user.Prefix != c.prefix)
	})
}
