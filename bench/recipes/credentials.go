package recipes

import (
	"context"
	"crypto/tls"
	"os"
	"strings"
)

// PasswordFile reads the password at each dial from a file that a secret store writes anew:
// Config{Credentials: PasswordFile("locks", "/run/secrets/redis")}. Connections that are open stay so.
func PasswordFile(user, path string) func(ctx context.Context, node string) (string, string, error) {
	return func(context.Context, string) (string, string, error) {
		password, err := os.ReadFile(path)
		return user, strings.TrimSpace(string(password)), err
	}
}

// CertificateFiles reads the client's certificate at each handshake: Config{TLS: CertificateFiles("tls.crt", "tls.key")}.
func CertificateFiles(cert, key string) *tls.Config {
	return &tls.Config{GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(cert, key)
		return &pair, err
	}}
}
