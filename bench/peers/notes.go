package main

import (
	"fmt"
	"runtime/debug"
	"strings"
)

// notes are what a reader has to know in order to compare. They are printed below the tables.
func notes() []string {
	return []string{
		"pair: one acquire and one release of one lock; every driver has the same keys, TTL, servers and window, and they take turns within each round",
		"what a client costs is its CPU for a pair; its servers have processors of their own, unless all are together: then a client that needs less CPU leaves more to them",
		"floor-goroutines: the floor with a goroutine that parks for each lock, the limit of a blocking call",
		"goredis, redigo: a pool with one connection for each worker and node, all open before anything is counted (with WithFailFast three more for each, at least 64 and at most 512); rueidis pipelines on its own few connections",
		"timeouts of 500 ms for dials, reads and writes of every peer, which is what redsync gives a node for this TTL; repeats by the client libraries are off, as a lock must not be set twice; their logs are off",
		"-ff: redsync with WithFailFast, which continues at a quorum; without it redsync waits for all nodes",
		"autopipeline: a Redlock by hand on go-redis AsyncAutoPipeline, one ordered pipeline a node, batches as large as there are workers; it waits for all nodes, autopipeline-quorum for a quorum (a goroutine for each vote, full duplex); each with the options that measured fastest for it; it has neither a bound on what is queued nor care for a node that is down",
		"redsync on rueidis uses an adapter of this benchmark that calls rueidis directly; redsync's own goes through another layer",
		"ours and redlock-portable have their default settings, with which a node has 50 ms to answer; redlock-patient gives it 500 ms, as the peers do; redlock-portable is the same without raw sockets, as on other systems",
		"contended: every driver waits in its library's own way. redlock queues up and is notified by the nodes, redsync sleeps 50 to 250 ms at random, redislock and autopipeline 16 ms, rueidislock is notified by the server",
		"versions: " + versions(),
	}
}

// versions lists the libraries that are measured, as they were built in.
func versions() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	var all []string
	for _, dep := range info.Deps {
		for _, peer := range []string{"redsync", "go-redis", "redigo", "rueidis", "redislock"} {
			if strings.Contains(dep.Path, "/"+peer) {
				all = append(all, fmt.Sprintf("%s %s", peer, dep.Version))
			}
		}
	}
	return strings.Join(all, ", ")
}
