package recipes

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/certmagic"
	"github.com/stretchr/testify/require"
)

// authority issues certificates, and counts them.
type authority struct {
	key    *ecdsa.PrivateKey
	issued atomic.Int32
}

func (a *authority) IssuerKey() string { return "test" }

func (a *authority) Issue(_ context.Context, csr *x509.CertificateRequest) (*certmagic.IssuedCertificate, error) {
	a.issued.Add(1)
	t := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: csr.DNSNames, NotBefore: time.Now(), NotAfter: time.Now().Add(24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, t, t, csr.PublicKey, a.key)
	return &certmagic.IssuedCertificate{Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}, err
}

// TestStorage: two instances that need a certificate at once obtain one.
func TestStorage(t *testing.T) {
	clients, _ := instances(t, 2)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	issuer, shared := &authority{key: key}, &certmagic.FileStorage{Path: t.TempDir()}
	obtained := make(chan error)
	for _, client := range clients {
		storage := &Storage{Storage: shared, Client: client}
		var cfg *certmagic.Config
		cache := certmagic.NewCache(certmagic.CacheOptions{GetConfigForCert: func(certmagic.Certificate) (*certmagic.Config, error) { return cfg, nil }})
		t.Cleanup(cache.Stop)
		cfg = certmagic.New(cache, certmagic.Config{Storage: storage, Issuers: []certmagic.Issuer{issuer}})
		go func() { obtained <- cfg.ObtainCertSync(t.Context(), "example.com") }()
	}
	for range clients {
		require.NoError(t, <-obtained)
	}
	require.EqualValues(t, 1, issuer.issued.Load())

	first, second := &Storage{Client: clients[0]}, &Storage{Client: clients[1]}
	ok, err := first.TryLock(t.Context(), "renew")
	require.True(t, ok)
	require.NoError(t, err)
	ok, err = second.TryLock(t.Context(), "renew")
	require.False(t, ok)
	require.NoError(t, err)
	require.NoError(t, first.Unlock(t.Context(), "renew"))
	require.Error(t, first.Unlock(t.Context(), "renew"), "it is not locked any more")
}
