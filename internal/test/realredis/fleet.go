package realredis

import "errors"

// Fleet is a number of independent servers.
type Fleet struct {
	Servers []*Server
}

// Launch starts n servers. They run until Close. Each gets the options at its index, or the last
// ones given.
func Launch(n int, opts ...Options) (*Fleet, error) {
	if len(opts) == 0 {
		opts = []Options{{}}
	}
	f := &Fleet{}
	for i := range n {
		s, err := launch(opts[min(i, len(opts)-1)])
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		f.Servers = append(f.Servers, s)
	}
	return f, nil
}

// Addrs lists the addresses of the servers.
func (f *Fleet) Addrs() []string {
	addrs := make([]string, len(f.Servers))
	for i, s := range f.Servers {
		addrs[i] = s.Addr()
	}
	return addrs
}

// Close kills all servers.
func (f *Fleet) Close() error {
	var errs []error
	for _, s := range f.Servers {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}
