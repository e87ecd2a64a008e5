package fence

import (
	"net"
	"slices"
	"strings"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/client/engine"
)

// lost finds the nodes named as lost by an operator, in the words of a configuration: "host:port", a URL, or a host
// without its port if one node alone has it. A name of no node is an error: the node that was meant would count as one
// that may remember.
func (a Acts) lost(given []string) (nodes []string, err error) {
	var known []string
	for _, c := range a.Groups {
		known = append(known, c.cfg.Nodes...)
	}
	for _, text := range given {
		parsed, err := conn.ParseAddresses([]string{text})
		if err != nil { // it is not quoted: it may have a password
			return nil, engine.WrongArgument("a lost node is named wrongly: %v", err)
		}
		name := parsed[0].String()
		fits := slices.DeleteFunc(slices.Clone(known), func(node string) bool { return node != name && !isPortOf(node, name, text) })
		switch {
		case len(fits) == 0:
			return nil, engine.WrongArgument("the lost node %s is no node of this client, which has %s", name, strings.Join(known, ", "))
		case len(fits) > 1 && !slices.Contains(fits, name):
			return nil, engine.WrongArgument("the lost node is one of %s: name its port, too", strings.Join(fits, ", "))
		case slices.Contains(fits, name):
			nodes = append(nodes, name)
		default:
			nodes = append(nodes, fits[0])
		}
	}
	return nodes, nil
}

// isPortOf reports whether a node has the host of a name given without a port.
func isPortOf(node, name, given string) bool {
	host, port, err := net.SplitHostPort(name)
	if err != nil || strings.Contains(given, ":"+port) {
		return false
	}
	of, _, err := net.SplitHostPort(node)
	return err == nil && of == host
}
