package conn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// addressDelay is from the first packet to one address of a name to that to the next, as RFC 8305 recommends.
	addressDelay = 250 * time.Millisecond
	// mostTries bounds the tries of one dial under way at once beyond one of each address.
	mostTries = 4
	// maxAddresses bounds the tried addresses of a name.
	maxAddresses = 16
	// CredentialsTimeout is how long Config.Credentials has. DialTimeout does not count this time.
	CredentialsTimeout = 10 * time.Second
)

// dialer is one dial of a node.
type dialer struct {
	fleet       *Fleet
	addr        Address
	credentials func() (login, error) // asked for once, by the first connection in need of them
}

type login struct{ user, password string }

// connect makes one dial: it tries the addresses of the node one after another, each begun 250 ms after the one
// before it, or as soon as that has failed. It takes the first connection with a whole handshake. An address with DialTimeout
// for itself alone would keep the node down for ever, where another one is silent and comes first.
//
// Any answer of a server ends the dial: the other addresses lead to the same server. So a wrong password is
// tried once.
//
// While a caller is in want of a quorum, a silent address is tried again each 250 ms, beside the try before: where the
// first packet is lost the system sends another one only after a second.
func (d *dialer) connect() (net.Conn, identity, error) {
	ctx, cancel := context.WithCancel(d.fleet.ctx) // Close must not wait for a black hole
	defer cancel()                                 // of the other tries
	d.credentials = sync.OnceValues(func() (login, error) { return d.ask(ctx) })
	addresses, err := d.addresses(ctx)
	if err != nil {
		return nil, identity{}, err
	}
	ended := make(chan *try)
	next := time.NewTimer(addressDelay)
	defer next.Stop()
	var failed []*try // at least one at each address
	begun, under := 0, 0
	begin := func() {
		t := &try{dialer: d, host: addresses[begun%len(addresses)], again: begun >= len(addresses), left: d.fleet.cfg.DialTimeout}
		begun, under = begun+1, under+1
		d.fleet.dials.Go(func() { t.run(ctx, ended) })
		next.Reset(addressDelay)
	}
	begin()
	for len(failed) < len(addresses) {
		select {
		case <-next.C:
			if wanted, _ := d.fleet.wanted(); begun < len(addresses) || under < mostTries && wanted {
				begin()
			} else {
				next.Reset(addressDelay)
			}
		case t := <-ended:
			if t.err == nil || t.answered {
				return t.nc, t.id, t.err
			}
			under--
			if !t.again {
				failed = append(failed, t)
				if begun < len(addresses) {
					begin()
				}
			}
		case <-ctx.Done():
			return nil, identity{}, ctx.Err()
		}
	}
	return nil, identity{}, errorOf(failed)
}

// errorOf is the error of a dial without an answer. Where the addresses of a name have failed for several reasons it
// names each of them.
func errorOf(failed []*try) error {
	var errs []error
	var texts []string
	for _, t := range failed {
		text := nameless(t.err)
		errs = append(errs, t.err)
		if len(texts) > 0 && text == nameless(errs[0]) {
			continue
		}
		texts = append(texts, t.host+" "+text)
	}
	if len(texts) == 1 {
		return errs[0]
	}
	return &cause{strings.Join(texts, ", "), errors.Join(errs...), nil}
}

// addresses are the addresses of the node's name, each with the port. They are tried in the order of the resolver, but
// IPv6 and IPv4 in turn, since one of the two may lead nowhere. A Dialer is given the name.
func (d *dialer) addresses(ctx context.Context) ([]string, error) {
	cfg := &d.fleet.cfg
	lookup := cfg.knobs.Lookup
	host, port, err := net.SplitHostPort(d.addr.Host)
	if d.addr.Network != "tcp" || err != nil || lookup == nil && cfg.Dialer != nil {
		return []string{d.addr.Host}, nil
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return []string{d.addr.Host}, nil
	}
	if lookup == nil {
		lookup = net.DefaultResolver.LookupNetIP
	}
	var found []netip.Addr
	left := cfg.DialTimeout
	if err := within(ctx, &left, cfg.DialTimeout, "the look-up of the name", func(ctx context.Context) (err error) {
		found, err = lookup(ctx, "ip", host)
		return err
	}); err != nil {
		return nil, err
	}
	var all []string
	for _, ip := range inTurn(found) {
		all = append(all, net.JoinHostPort(ip.String(), port))
	}
	if len(all) == 0 {
		return nil, errors.New("lookup: the name has no address")
	}
	return all[:min(len(all), maxAddresses)], nil
}

// inTurn returns addresses with the two families in turn, the first one's first.
func inTurn(all []netip.Addr) (mixed []netip.Addr) {
	var families [2][]netip.Addr
	for _, ip := range all {
		ip = ip.Unmap()
		family := 0
		if ip.Is4() != all[0].Unmap().Is4() {
			family = 1
		}
		if !slices.Contains(families[family], ip) {
			families[family] = append(families[family], ip)
		}
	}
	for i := range all {
		for _, family := range families {
			if i < len(family) {
				mixed = append(mixed, family[i])
			}
		}
	}
	return mixed
}

// ask returns the credentials, which are asked for at every dial, and not kept. The default user has no name here.
func (d *dialer) ask(ctx context.Context) (l login, err error) {
	if credentials := d.fleet.cfg.Credentials; credentials != nil {
		left := CredentialsTimeout
		err = within(ctx, &left, CredentialsTimeout, "", func(ctx context.Context) (err error) {
			l.user, l.password, err = credentials(ctx, d.addr.Host)
			return err
		})
		if err != nil {
			return login{}, fmt.Errorf("credentials: %w", err)
		}
	} else {
		l.user, l.password = d.addr.Login()
	}
	if l.user == defaultUser {
		l.user = ""
	}
	return l, nil
}
