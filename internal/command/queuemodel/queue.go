// Package queuemodel is queue.lua in Go, for models of servers. It is pure.
package queuemodel

import "github.com/redlock-go/redlock/internal/command"

// Queue is the sorted set of one queue: who is in it, the first first. The script gives
// out growing scores only, so the order is all that matters. The zero value is empty.
type Queue struct{ ids []string }

// Tickets is the keys of the tickets of one queue, by the ids of their processes. Times
// are milliseconds.
type Tickets interface {
	// Left is how long a ticket lives, if there is one.
	Left(id string) (left int64, is bool)
	// Expire shortens the life of one that exists, by PEXPIRE.
	Expire(id string, left int64)
	Set(id string, left int64)
	Delete(id string)
}

// Lifetimes are the lifetimes of tickets that the script is called with, in milliseconds.
type Lifetimes struct{ Alone, First, Behind int64 }

// Run is a call of the script. It returns the reply.
func (q *Queue) Run(way command.Way, id string, of Lifetimes, t Tickets) [4]int64 {
	if way != command.Enter {
		q.remove(id)
		t.Delete(id)
	}
	if way != command.Leave && q.place(id) < 0 {
		q.ids = append(q.ids, id)
	}
	left := int64(0)
	for len(q.ids) > 0 && q.ids[0] != id {
		var is bool
		if left, is = t.Left(q.ids[0]); is {
			break
		}
		q.ids, left = q.ids[1:], 0
	}
	others, first := int64(len(q.ids)-1), len(q.ids) > 0 && q.ids[0] == id
	if left > of.First {
		t.Expire(q.ids[0], of.First)
		left = of.First
	}
	if way == command.Leave {
		return [4]int64{0, others + 1, 0, left}
	}
	lease, is := of.Behind, int64(0)
	switch {
	case first && others == 0:
		lease, is = of.Alone, 1
	case first:
		lease, is = of.First, 1
	}
	t.Set(id, lease)
	return [4]int64{is, others, lease, left}
}

// Len is how many are in the queue.
func (q *Queue) Len() int { return len(q.ids) }

func (q *Queue) place(id string) int {
	for i, other := range q.ids {
		if other == id {
			return i
		}
	}
	return -1
}

func (q *Queue) remove(id string) {
	if i := q.place(id); i >= 0 {
		q.ids = append(q.ids[:i:i], q.ids[i+1:]...)
	}
}
