package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"strings"
)

// pair names the files of a certificate and its key.
type pair struct{ cert, key string }

func (p pair) isSet() bool { return p.cert+p.key != "" }

// load reads a pair. If either is missing, flag names the two in the error.
func (p pair) load(flag string) (tls.Certificate, error) {
	switch {
	case p.key == "":
		return tls.Certificate{}, fmt.Errorf("-%s-cert needs -%s-key", flag, flag)
	case p.cert == "":
		return tls.Certificate{}, fmt.Errorf("-%s-key needs -%s-cert", flag, flag)
	}
	key, err := readSecret(p.key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("-%s-key: %w", flag, err)
	}
	chain, _, err := readWhole(p.cert)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("-%s-cert: %w", flag, err)
	}
	loaded, err := tls.X509KeyPair(chain, key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("-%s-cert and -%s-key: %w", flag, flag, err)
	}
	return loaded, nil
}

// listenTLS returns the TLS of the listener, nil without one. Its certificate is read again when it changes.
func (p pair) listenTLS(log *slog.Logger) (*tls.Config, *watched[*tls.Certificate], error) {
	if !p.isSet() {
		return nil, nil, nil
	}
	w, err := watch(log, func() (*tls.Certificate, error) {
		loaded, err := p.load("listen")
		return &loaded, err
	}, p.cert, p.key)
	if err != nil {
		return nil, nil, usage("%v", err)
	}
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return w.get(), nil },
	}, w, nil
}

// masterTLS has the files for the trust between this client and rediss:// nodes, in both directions.
type masterTLS struct {
	ca string
	pair
}

func (m *masterTLS) isSet() bool { return m.ca != "" || m.pair.isSet() }

// read makes a configuration of the files.
func (m *masterTLS) read() (*tls.Config, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if m.ca != "" {
		text, _, err := readWhole(m.ca)
		if err != nil {
			return nil, fmt.Errorf("-tls-ca: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("-tls-ca: %s has no certificate%s", m.ca, looksLikeKey(text))
		}
	}
	if m.pair.isSet() {
		loaded, err := m.load("tls")
		if err != nil {
			return nil, err
		}
		cfg.Certificates = []tls.Certificate{loaded}
	}
	return cfg, nil
}

func looksLikeKey(text []byte) string {
	if bytes.Contains(text, []byte("PRIVATE KEY")) {
		return ", but a key"
	}
	return ""
}

// watch returns the TLS of the nodes, nil without settings for it. It is made again when its files change.
func (m *masterTLS) watch(log *slog.Logger, nodes string) (*watched[*tls.Config], error) {
	if !m.isSet() {
		return nil, nil
	}
	if !strings.Contains(nodes, "rediss://") {
		return nil, errors.New("-tls-ca, -tls-cert and -tls-key are for rediss:// nodes, and there are none")
	}
	return watch(log, m.read, m.ca, m.cert, m.key)
}
