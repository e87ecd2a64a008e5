package group

import (
	"errors"
	"fmt"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/quorum"
)

// Lists is some of the two lists of nodes in a Config.
type Lists struct{ Nodes, NextNodes bool }

// Members is which nodes are in which list. A node of both is one node: it is asked once, and
// counts in both.
type Members struct {
	Now, Next *quorum.Config // the lists; Next is nil unless there are two
	Quorum    *quorum.Config // both together
	one       Lists          // the only list, where Next is nil; both, if they are alike
}

// parse reads the lists: addresses are those of Nodes, and then the new ones of NextNodes. For one of several groups,
// in is its lists of groups; there the nodes of both may be alike.
func parse(nodes, nextNodes []string, in Lists) (m Members, addresses []conn.Address, err error) {
	m.one = in
	if in == (Lists{}) {
		m.one.Nodes = true
	}
	if n := len(nodes); n == 0 || n > quorum.MaxNodes {
		return m, nil, fmt.Errorf("%d nodes, want 1 to %d", n, quorum.MaxNodes)
	}
	if addresses, err = conn.ParseAddresses(nodes); err != nil {
		return m, nil, err
	}
	m.Now = quorum.Majority(quorum.First(len(nodes)))
	m.Quorum = m.Now
	if len(nextNodes) == 0 {
		return m, addresses, nil
	}
	next, err := conn.ParseAddresses(nextNodes)
	if err != nil {
		return m, nil, fmt.Errorf("NextNodes: %w", err)
	}
	places := map[string]int{}
	for i, a := range addresses {
		places[a.Host] = i
	}
	var all quorum.Set
	for _, a := range next {
		i, isIn := places[a.Host]
		switch {
		case !isIn:
			i = len(addresses)
			addresses = append(addresses, a)
		case !a.Equal(addresses[i]):
			return m, nil, fmt.Errorf("%s is in Nodes and in NextNodes with other credentials or options: write it alike in both", a)
		}
		all.Add(i)
	}
	switch n := len(addresses); {
	case n > quorum.MaxNodes:
		return m, nil, fmt.Errorf("%d nodes in Nodes and NextNodes together, at most %d are allowed: change the nodes in several steps", n, quorum.MaxNodes)
	case all == m.Now.Nodes() && in.NextNodes:
		return m, addresses, nil
	case all == m.Now.Nodes():
		return m, nil, errors.New("NextNodes has the same nodes as Nodes: leave it empty unless the nodes change")
	}
	m.Next = quorum.Majority(all)
	m.Quorum = quorum.Joint(m.Now, m.Next)
	return m, addresses, nil
}

// in returns the lists of a node.
func (m *Members) in(node int) Lists {
	if m.Next == nil {
		return m.one
	}
	return Lists{m.Now.Nodes().Has(node), m.Next.Nodes().Has(node)}
}

// blocked returns the lists that have no quorum without some nodes.
func (m *Members) blocked(nodes quorum.Set) Lists {
	return Lists{m.Now.Blocks(nodes), m.Next != nil && m.Next.Blocks(nodes)}
}
