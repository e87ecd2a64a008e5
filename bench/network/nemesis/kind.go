package nemesis

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/redlock-go/redlock/bench/network/wire"
)

// draw is what draws.
type draw struct {
	Plan
	Masters []int // of the group that the next fault hits
	rng     *rand.Rand
}

// isFew reports whether a minority of the masters is hit at most.
func (d *draw) isFew() bool { return d.Mix == "minority" }

// fault draws one of a kind.
func (d *draw) fault(kind string) *Fault {
	d.Masters = d.Groups[0]
	if len(d.Groups) > 1 {
		d.Masters = d.Groups[d.rng.IntN(len(d.Groups))]
	}
	f := &Fault{For: d.between(time.Second, 5*time.Second)}
	f.Kind, f.Hit = kind, d.Clients
	kinds[kind](d, f)
	f.For = time.Duration(float64(f.For) * d.Scale)
	return f
}

func (d *draw) between(a, b time.Duration) time.Duration {
	return a + time.Duration(d.rng.Int64N(int64(b-a)))
}

func (d *draw) some(from []int, n int) []int {
	var chosen []int
	for _, i := range d.rng.Perm(len(from))[:n] {
		chosen = append(chosen, from[i])
	}
	slices.Sort(chosen)
	return chosen
}

// masters draws one, two or three masters, or more by the numbers given.
func (d *draw) masters(f *Fault, numbers ...int) []int {
	switch {
	case d.isFew():
		numbers = []int{1, 2}
	case numbers == nil:
		numbers = []int{1, 2, 2, 3, 3}
	}
	m := d.some(d.Masters, numbers[d.rng.IntN(len(numbers))])
	f.Scope, f.Masters, f.Detail = Minority, m, fmt.Sprint(m)
	if len(m) > len(d.Masters)/2 {
		f.Scope = Majority
	}
	return m
}

// anywhere draws all links, those of one client, or those of one or two masters.
func (d *draw) anywhere(f *Fault, e *wire.Effect) {
	switch n := d.rng.IntN(3); {
	case n == 0 && !d.isFew():
		e.Between(d.Masters, d.Clients)
	case n == 1 && !d.isFew():
		f.Hit = d.some(d.Clients, 1)
		e.Between(d.Masters, f.Hit)
		f.Detail += fmt.Sprint(" client ", f.Hit)
	default:
		detail := f.Detail
		m := d.masters(f, 1, 2)
		e.Between(m, d.Clients)
		f.Detail = fmt.Sprint(detail, " masters ", m)
	}
	f.Begin = effect(e)
}

// kinds are all kinds of faults.
var kinds = map[string]func(d *draw, f *Fault){
	"delay": func(d *draw, f *Fault) {
		e := &wire.Effect{Delay: d.between(time.Millisecond, 15*time.Millisecond), InOrder: d.rng.IntN(2) == 0}
		e.Jitter = e.Delay / time.Duration(1+d.rng.IntN(4))
		f.Detail = fmt.Sprintf("%v ± %v, in order %v", e.Delay, e.Jitter, e.InOrder)
		d.anywhere(f, e)
	},
	"loss": func(d *draw, f *Fault) {
		e := &wire.Effect{Drop: []float64{.01, .03, .1, .2, .3}[d.rng.IntN(5)]}
		f.Detail = fmt.Sprintf("%.0f %%", e.Drop*100)
		d.anywhere(f, e)
	},
	"mess": func(d *draw, f *Fault) {
		e := &wire.Effect{Delay: d.between(time.Millisecond, 8*time.Millisecond), Jitter: time.Millisecond, Reorder: .25, Duplicate: .1, Corrupt: .01}
		f.Detail = fmt.Sprintf("25 %% reordered by %v, 10 %% twice, 1 %% corrupt", e.Delay)
		f.Begin = effect(e.Between(d.Masters, d.Clients))
	},
	"rate": func(d *draw, f *Fault) {
		e := &wire.Effect{Rate: (2 + d.rng.IntN(30)) << 10, Backlog: d.between(100*time.Millisecond, 2*time.Second)}
		f.Detail = fmt.Sprintf("%d bytes/s a link, backlog %v", e.Rate, e.Backlog)
		d.anywhere(f, e)
	},
	"cut": func(d *draw, f *Fault) {
		f.Begin = effect((&wire.Effect{Drop: 1}).Between(d.masters(f), d.Clients))
	},
	"cut-client": func(d *draw, f *Fault) {
		m := d.masters(f, 2, 3, 5)
		f.Hit = d.some(d.Clients, 1)
		f.Detail = fmt.Sprint(f.Hit, " from ", m)
		f.Begin = effect((&wire.Effect{Drop: 1}).Between(m, f.Hit))
	},
	// Two halves of the clients see three masters each, one of them the same.
	"bridge": func(d *draw, f *Fault) {
		m, half := d.rng.Perm(len(d.Masters)), len(d.Clients)/2
		e := &wire.Effect{Drop: 1}
		for i, n := range m {
			if i < 2 {
				e.Between([]int{d.Masters[n]}, d.Clients[:half])
			} else if i < 4 {
				e.Between([]int{d.Masters[n]}, d.Clients[half:])
			}
		}
		f.Scope, f.Begin = Minority, effect(e)
	},
	// Each client sees three other masters.
	"ring": func(d *draw, f *Fault) {
		e := &wire.Effect{Drop: 1}
		for i, c := range d.Clients {
			n := len(d.Masters)
			e.Between([]int{d.Masters[i%n], d.Masters[(i+1)%n]}, []int{c})
		}
		f.Scope, f.Begin = Minority, effect(e)
	},
	"lost-requests": func(d *draw, f *Fault) {
		f.Begin = effect((&wire.Effect{Drop: 1}).OneWay(d.Clients, d.masters(f)))
	},
	"lost-replies": func(d *draw, f *Fault) {
		f.Begin = effect((&wire.Effect{Drop: 1}).OneWay(d.masters(f), d.Clients))
	},
	"flap": func(d *draw, f *Fault) {
		m, period := d.masters(f), d.between(100*time.Millisecond, 3*time.Second)
		if d.rng.IntN(2) == 0 {
			f.Hit = d.some(d.Clients, 1)
		}
		f.For = d.between(3*time.Second, 7*time.Second)
		f.Detail += fmt.Sprintf(" from %v every %v", f.Hit, period)
		f.Begin = flapping((&wire.Effect{Drop: 1}).Between(m, f.Hit), period)
	},
	"stale": func(d *draw, f *Fault) {
		f.For = d.between(3*time.Second, 6*time.Second)
		f.Begin = effect((&wire.Effect{Stale: true}).Between(d.masters(f, 1, 2, 3, 5), d.Clients))
	},
	"freeze": func(d *draw, f *Fault) {
		m := d.masters(f)
		if d.rng.IntN(2) == 0 {
			f.Hit = d.some(d.Clients, 1)
			if !d.isFew() && d.rng.IntN(2) == 0 {
				m, f.Masters, f.Scope = d.Masters, d.Masters, Majority
			}
		}
		e, way := &wire.Effect{Freeze: true}, "both ways"
		switch d.rng.IntN(3) {
		case 0:
			e.Between(m, f.Hit)
		case 1:
			e.OneWay(f.Hit, m)
			way = "requests"
		default:
			e.OneWay(m, f.Hit)
			way = "replies"
		}
		f.Detail = fmt.Sprintf("%s, %v and %v", way, m, f.Hit)
		f.Begin = effect(e)
	},
	"reset": func(d *draw, f *Fault) {
		e := &wire.Effect{Reset: []float64{.01, .05, .2}[d.rng.IntN(3)]}
		e.Between(d.masters(f), d.Clients)
		f.Detail += fmt.Sprintf(" %.0f %% of packets", e.Reset*100)
		f.Begin = effect(e)
	},
	"refuse": func(d *draw, f *Fault) {
		e := &wire.Effect{Refuse: wire.ByReset + wire.Refusal(d.rng.IntN(4))}
		f.Begin = effect(e.OneWay(d.Clients, d.masters(f)))
	},
	"link": func(d *draw, f *Fault) {
		f.Begin = unlinked(d.masters(f))
	},
	"link-client": func(d *draw, f *Fault) {
		f.Hit = d.some(d.Clients, 1)
		f.Scope, f.Detail, f.Begin = Majority, fmt.Sprint(f.Hit), unlinked(f.Hit)
	},
	"mtu": func(d *draw, f *Fault) {
		e := &wire.Effect{Largest: []int{200, 400, 700, 1000}[d.rng.IntN(4)]}
		e.Between(d.masters(f), d.Clients)
		f.Detail += fmt.Sprintf(" above %d bytes", e.Largest)
		f.Begin = effect(e)
	},
	"stop-master": func(d *draw, f *Fault) {
		f.Begin = stopped(d.masters(f))
	},
	"stop-client": func(d *draw, f *Fault) {
		f.Hit, f.For = d.some(d.Clients, 1+d.rng.IntN(2)), d.between(300*time.Millisecond, 5*time.Second)
		f.Scope, f.Detail, f.Begin = Majority, fmt.Sprint(f.Hit), stopped(f.Hit)
	},
	"kill": func(d *draw, f *Fault) {
		numbers := []int{1, 1, 2, 2, 3}
		for i := range numbers {
			numbers[i] = min(numbers[i], d.AtMost)
		}
		f.Begin = killed(d.masters(f, numbers...))
	},
}

// mixes are named lists of kinds.
var mixes = map[string]string{
	"partition": "cut,cut,cut-client,bridge,ring,lost-requests,lost-replies,flap,flap,link,link-client",
	"packets":   "delay,loss,loss,mess,rate,reset,mtu,freeze",
	"silence":   "stale,freeze,freeze,lost-replies,lost-requests,cut,stop-master,mtu",
	"process":   "stop-client,stop-client,stop-master,freeze,cut",
	"restart":   "kill,kill,kill,stop-master,cut,freeze,stop-client",
	"reset":     "reset,reset,refuse,refuse,link,stale,flap",
	"minority":  "cut,delay,loss,freeze", // of one or two masters
	"calm":      "",
}

// Mixes are the names of all mixes.
func Mixes() []string { return append(slices.Sorted(maps.Keys(mixes)), "all", "every") }

// kindsOf are the kinds of a mix: by its name, or themselves separated by commas. All kinds but kill are "all"; "every" has it too.
func kindsOf(mix string) (list []string, err error) {
	all := slices.Sorted(maps.Keys(kinds))
	text, isMix := mixes[mix]
	switch {
	case mix == "all" || mix == "every":
		list = slices.DeleteFunc(all, func(k string) bool { return k == "kill" })
		if mix == "every" {
			list = append(list, "kill", "kill", "kill")
		}
		return list, nil
	case !isMix:
		text = mix
	}
	for _, kind := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' }) {
		if kinds[kind] == nil {
			return nil, fmt.Errorf("no mix and no kind of fault is called %q; mixes: %s; kinds: %s", kind, strings.Join(Mixes(), ", "), strings.Join(all, ", "))
		}
		list = append(list, kind)
	}
	return list, nil
}

// Kills reports whether masters are killed in a mix.
func Kills(mix string) bool {
	list, _ := kindsOf(mix)
	return slices.Contains(list, "kill")
}
