package main

import (
	"fmt"
	"slices"

	"github.com/redlock-go/redlock/internal/server/frontend"
)

// reload reads the files again. All of them are used from now on, or none if one has a mistake.
func (s *server) reload(front *frontend.Server) {
	notify(reloading())
	defer notify("READY=1")
	changed, err := s.readAgain(front)
	s.reloadFailed.Store(err != nil)
	if err != nil {
		s.log.Error("redlock: reload: nothing has changed", "error", trimName(err))
		return
	}
	if len(changed) > 0 {
		s.log.Warn("redlock: reload: these settings of the file have changed, and need a restart", "settings", changed)
	}
	fmt.Fprintln(s.env.out, "redlock has read its files again")
}

// readAgain reads everything before it uses anything. changed lists the settings that need a restart.
func (s *server) readAgain(front *frontend.Server) (changed []string, err error) {
	users, err := s.readUsers()
	if err != nil {
		return nil, err
	}
	scripts, err := s.readScripts()
	if err != nil {
		return nil, err
	}
	uses := []func(){func() { front.Reload(users, scripts) }}
	if s.listenPair != nil {
		use, err := s.listenPair.prepare()
		if err != nil {
			return nil, err
		}
		uses = append(uses, use)
	}
	if s.secure != nil {
		use, err := s.secure.prepare()
		if err != nil {
			return nil, err
		}
		uses = append(uses, use)
	}
	if s.config != "" {
		lines, err := s.linesOf(s.config)
		if err != nil {
			return nil, err
		}
		use, isOther, err := s.logins.prepare(lines)
		if err != nil {
			return nil, err
		}
		uses = append(uses, use)
		if isOther {
			changed = append(changed, "nodes")
		}
		changed = append(changed, s.changed(lines)...)
	}
	for _, use := range uses {
		use()
	}
	return changed, nil
}

// changed returns the settings of serve whose lines in the file have changed since the start.
func (s *server) changed(lines map[string]line) (names []string) {
	for _, row := range s.rows() {
		if isList := row.name == "nodes" || row.name == "next-nodes"; !isList && !s.given[row.name] && lines[row.name].text != s.lines[row.name].text {
			names = append(names, row.name)
		}
	}
	return slices.Compact(names)
}
