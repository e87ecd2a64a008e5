// Package usage has what a user writes for the same use with redlock and with the best of other libraries,
// of which README.md has the counts. Ours that is not here is in bench/recipes. Where etcd is the best with a
// majority, rueidislock is beside it: it needs fewer lines, for a lock on one server.
package usage
