package main

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/redlock-go/redlock"
)

// maxPermits is the largest number of permits of a name.
const maxPermits = 64

// permitKey matches the key of a permit.
var permitKey = regexp.MustCompile(`^(.+):permit:([1-9][0-9]?)$`)

// permitOf returns the name and the number of a permit's key; the number is 0 for any other key.
func permitOf(key string) (name string, number int) {
	m := permitKey.FindStringSubmatch(key)
	if m == nil {
		return "", 0
	}
	number, _ = strconv.Atoi(m[2])
	inner, _ := strings.CutPrefix(strings.TrimSuffix(m[1], "}"), "{")
	for _, name := range []string{inner, m[1]} {
		if number <= maxPermits && redlock.Permits(name, number)[number-1] == key {
			return name, number
		}
	}
	return "", 0
}

// amongMark separates the name of a holder from its number of permits.
const amongMark = "/"

// among returns the name of a holder of one of n permits.
func among(holder string, n int) string {
	if n < 2 || len(holder) > 100 { // names have a bound
		return holder
	}
	return holder + amongMark + strconv.Itoa(n)
}

// amongOf returns the name and the number of permits in it, or 0.
func amongOf(holder string) (name string, n int) {
	at := strings.LastIndex(holder, amongMark)
	if at < 0 {
		return holder, 0
	}
	n, _ = strconv.Atoi(holder[at+1:])
	if n < 2 || n > maxPermits {
		return holder, 0
	}
	return holder[:at], n
}

// permitsInUse returns the held permits of a name, of n, or of any number if n is 0. In the latter case it first asks
// for one permit alone, and stops if the nodes do not show it: a login for the name alone is not refused 64 times.
func permitsInUse(ctx context.Context, client *redlock.Client, name string, n int) (inUse []redlock.KeyState, err error) {
	keys := redlock.Permits(name, max(n, 1))
	if n == 0 {
		first, err := client.Inspect(ctx, keys[0])
		if err != nil || first.Status == redlock.KeyUnknown {
			return nil, err
		}
		keys = redlock.Permits(name, maxPermits)
	}
	var all sync.WaitGroup
	states, errs := make([]redlock.KeyState, len(keys)), make([]error, len(keys))
	for i, key := range keys {
		all.Go(func() { states[i], errs[i] = client.Inspect(ctx, key) })
	}
	all.Wait()
	for i, state := range states {
		switch {
		case errs[i] != nil:
			return nil, errs[i]
		case state.Status == redlock.KeyUnknown && n > 0:
			return nil, unknownState(state)
		case isHeld(state.Status):
			inUse = append(inUse, state)
		}
	}
	return inUse, nil
}

// permits returns permits in their shown form.
func permits(states []redlock.KeyState, n int) (all []key) {
	for _, state := range states {
		k := newKey(state)
		if n > 0 {
			k.Of = n
		}
		all = append(all, k)
	}
	return all
}

// inUse returns the number of permits in use, in words.
func inUse(permits []key) string {
	of := 0
	for _, k := range permits {
		of = max(of, k.Of)
	}
	switch {
	case of > 0:
		return fmt.Sprintf("%d of %d permits in use", len(permits), of)
	case len(permits) == 1:
		return "1 permit in use"
	}
	return fmt.Sprintf("%d permits in use", len(permits))
}

// place describes a permit in words.
func (k *key) place() string {
	if k.Of == 0 {
		return fmt.Sprint("permit ", k.Permit)
	}
	return fmt.Sprintf("permit %d of %d", k.Permit, k.Of)
}

// mixed returns a warning about a name used with -n and without, or with different numbers, or "". Such uses exclude
// each other less than their users think.
func (r *runner) mixed(ctx context.Context, client *redlock.Client) string {
	for _, name := range r.names {
		if r.permits > 1 {
			state, err := client.Inspect(ctx, name)
			if err == nil && isHeld(state.Status) {
				k := newKey(state)
				return fmt.Sprintf("%s: it is held without -n as well (by %s); that lock and the permits do not exclude each other", name, k.holders())
			}
		}
		states, err := permitsInUse(ctx, client, name, 0)
		if err != nil {
			return ""
		}
		all := permits(states, 0)
		other := slices.IndexFunc(all, func(k key) bool { return r.permits == 1 || k.Permit > r.permits || k.Of > 0 && k.Of != r.permits })
		switch {
		case other < 0:
		case r.permits == 1:
			return fmt.Sprintf("%s: it has %s as well (-n, by %s); permits and a lock without -n do not exclude each other", name, inUse(all), holdersOf(all))
		default:
			return fmt.Sprintf("%s: %s is in use (by %s), and -n is %d here: all must use the same", name, all[other].place(), all[other].holders(), r.permits)
		}
	}
	return ""
}

// holdersOf returns the names of the holders of permits.
func holdersOf(permits []key) string {
	var names []string
	for _, k := range permits {
		names = append(names, k.holders())
	}
	return strings.Join(names, ", ")
}
