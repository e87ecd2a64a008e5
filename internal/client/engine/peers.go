package engine

import (
	"runtime"
	"sync/atomic"
)

// Peers is the engines of one client: one for each of its groups. It is complete before the first
// operation is submitted. A nil Peers is one engine alone.
type Peers struct {
	procs  int64 // GOMAXPROCS
	depths []*atomic.Int64
}

// NewPeers is Peers without an engine. New adds the engine it makes.
func NewPeers() *Peers { return &Peers{procs: int64(runtime.GOMAXPROCS(0))} }

func (p *Peers) add(depth *atomic.Int64) {
	if p != nil {
		p.depths = append(p.depths, depth)
	}
}

// crowd reports whether the other engines, all but the one of own, have an operation under way for each processor, or
// more: a caller that waits in the kernel keeps a processor from theirs.
func (p *Peers) crowd(own *atomic.Int64) bool {
	if p == nil || len(p.depths) == 1 {
		return false
	}
	others := -own.Load()
	for _, depth := range p.depths {
		others += depth.Load()
	}
	return others >= p.procs
}
