package conn

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redlock-go/redlock/resp"
)

// question is some requests, each with a number that no other ever has.
type question struct {
	Batch
	run       *desync
	first     uint64
	nodes     []outcome
	cancelled bool // nobody waits for the answer
}

// ask sends a new question to all nodes, or to one.
func (d *desync) ask(q *question) {
	n, filler := 1+d.rnd.IntN(32), ""
	if d.questions++; d.questions/(2*window)%24 == 3 { // for a while all of them are large
		n, filler = 64, " "+strings.Repeat("x", 4000)
	} else if d.rnd.IntN(32) == 0 {
		filler = " " + strings.Repeat("x", d.rnd.IntN(3000))
	}
	*q = question{run: d, first: d.asked, Batch: Batch{Buf: q.Buf[:0], Replies: n, Owner: q}, nodes: q.nodes[:0]}
	var text []byte
	for i := range n {
		text = append(strconv.AppendUint(text[:0], q.first+uint64(i), 10), filler...)
		q.Buf = resp.AppendBulk(resp.AppendBulkString(resp.AppendArray(q.Buf, 2), "ECHO"), text)
	}
	for range d.r.Len() {
		q.nodes = append(q.nodes, outcome{})
	}
	d.asked += uint64(n)
	d.waiting++
	d.flying[q] = struct{}{}
	if d.rnd.IntN(8) > 0 {
		d.r.Send(&q.Batch)
		return
	}
	one := d.rnd.IntN(d.r.Len())
	for i := range q.nodes {
		q.nodes[i].ended = i != one
	}
	d.r.SendTo(one, &q.Batch)
}

// Reply wants the number that the request had, whether anybody still cares for
// the answer or not.
func (q *question) Reply(node, i int, v *resp.Value) error {
	d, o := q.run, &q.nodes[node]
	if o.ended || i != o.replies {
		d.broken++
	}
	o.replies++
	o.ended = o.replies == q.Replies
	text := v.Bytes
	if v.IsError() {
		d.refusals++
		text = bytes.TrimPrefix(text, []byte("ERR "))
	}
	number, _, _ := bytes.Cut(text, space)
	if n, err := strconv.ParseUint(string(number), 10, 64); err != nil || n != q.first+uint64(i) {
		d.crossed++
		d.example = fmt.Sprintf("node %d: %.40q for %d", node, v.Bytes, q.first+uint64(i))
		return errMisfit
	}
	d.answers++
	if q.cancelled {
		d.unheard++
	}
	return nil
}

func (q *question) Fail(node, i int, err error) {
	d, o := q.run, &q.nodes[node]
	if o.ended || i != o.replies {
		d.broken++
	}
	o.ended = true
	if errors.Is(err, ErrNotSent) {
		d.notSent += int64(q.Replies - i)
	} else {
		d.lost += int64(q.Replies - i)
	}
}

func (q *question) Settled() {
	d := q.run
	for _, o := range q.nodes {
		if !o.ended {
			d.broken++
		}
	}
	if delete(d.flying, q); !q.cancelled {
		d.waiting--
	}
	d.idle = append(d.idle, q)
}
