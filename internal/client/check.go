package client

import (
	"errors"
	"fmt"
	"slices"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/client/group"
	"github.com/redlock-go/redlock/quorum"
)

// Names of the lists of groups in errors.
const (
	nowList  = "Groups"
	nextList = "NextGroups"
)

func label(list string, i int) string { return fmt.Sprintf("%s[%d]", list, i) }

// label names a group in errors.
func (c *Client) label(i int) string {
	if i >= c.now {
		return label(nextList, i)
	}
	return label(nowList, i)
}

// listsOf returns the nodes of a group in its lists. The second is empty unless both lists have it.
func listsOf(i int, groups, next [][]string) (now, then []string, in group.Lists) {
	in = group.Lists{Nodes: i < len(groups), NextNodes: i < len(next)}
	switch in {
	case group.Lists{Nodes: true}:
		return groups[i], nil, in
	case group.Lists{NextNodes: true}:
		return next[i], nil, in
	}
	return groups[i], next[i], in
}

// places is what nodes of fenced clients have of a group beside its nodes: clients with another number of groups are
// refused. A list without the group has a place for it too: there no client has this list alone. A single group has
// an empty one: it is the same as Nodes.
func places(i, now, next int) (all []string) {
	for _, n := range []int{now, next} {
		switch {
		case n == 0: // no change
		case n == 1 && i == 0:
			all = append(all, "")
		default:
			all = append(all, fmt.Sprintf(",group-%d-of-%d", i, n))
		}
	}
	return all
}

// check refuses duplicate nodes and groups that cannot be meant so. Each group checks its own nodes.
func check(cfg *group.Config, groups, next [][]string) error {
	switch {
	case len(groups) == 0 && len(next) > 0:
		return errors.New("NextGroups is set and Groups is not: set Groups to the present groups, or to one group of the present Nodes")
	case len(groups) == 0:
		return nil
	case len(cfg.NextNodes) > 0:
		return errors.New("both NextNodes and Groups are set: NextNodes changes Nodes, and NextGroups changes Groups")
	case len(cfg.Nodes) > 0:
		return errors.New("both Nodes and Groups are set: set Nodes for one group of masters, Groups for several")
	}
	now, err := parse(nowList, groups)
	if err != nil {
		return err
	}
	then, err := parse(nextList, next)
	if err != nil {
		return err
	}
	if slices.EqualFunc(now, then, alike) {
		return errors.New("NextGroups has the same groups as Groups: leave it empty unless they change")
	}
	type place struct {
		list  string
		group int
	}
	seen := make(map[string]place)
	for _, l := range []struct {
		name   string
		groups [][]conn.Address
	}{{nowList, now}, {nextList, then}} {
		for i, addresses := range l.groups {
			for _, a := range addresses {
				before, twice := seen[a.Host]
				seen[a.Host] = place{l.name, i}
				if !twice || before.group == i {
					continue
				}
				text := "each group needs masters that no other has"
				if before.list != l.name {
					text += "; one that goes to another group leaves its group in a change before"
				}
				return fmt.Errorf("both %s and %s have the node %s: %s", label(before.list, before.group), label(l.name, i), a, text)
			}
		}
	}
	return nil
}

// parse reads a list of groups.
func parse(list string, groups [][]string) (all [][]conn.Address, err error) {
	if len(groups) > MaxGroups {
		return nil, fmt.Errorf("%d %s, at most %d are allowed", len(groups), list, MaxGroups)
	}
	for i, nodes := range groups {
		switch n := len(nodes); {
		case n == 0:
			return nil, fmt.Errorf("%s: no nodes: remove the group, or list its masters", label(list, i))
		case n > quorum.MaxNodes:
			return nil, fmt.Errorf("%s: %d nodes, want 1 to %d", label(list, i), n, quorum.MaxNodes)
		}
		addresses, err := conn.ParseAddresses(nodes)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", label(list, i), err)
		}
		all = append(all, addresses)
	}
	return all, nil
}

// alike reports whether two groups have the same nodes.
func alike(a, b []conn.Address) bool {
	is := func(one conn.Address, in []conn.Address) bool {
		return slices.ContainsFunc(in, func(other conn.Address) bool { return other.Host == one.Host })
	}
	return len(a) == len(b) && !slices.ContainsFunc(a, func(one conn.Address) bool { return !is(one, b) })
}
