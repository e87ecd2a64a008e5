package testkit

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// LogSink collects printed and logged text, of several goroutines.
type LogSink struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (s *LogSink) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *LogSink) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// Logger returns a logger that writes text of a level and above into s.
func (s *LogSink) Logger(level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(s, &slog.HandlerOptions{Level: level}))
}

// Add writes values down in every way of package fmt, and through slog, with their wrapped errors.
func (s *LogSink) Add(values ...any) {
	for _, v := range values {
		fmt.Fprintf(s, "%v\n%+v\n%#v\n%s\n%q\n%d\n%x\n", v, v, v, v, v, v, v)
		slog.New(slog.NewTextHandler(s, nil)).Info("text", "value", v)
		slog.New(slog.NewJSONHandler(s, nil)).Info("json", "value", v)
		err, ok := v.(error)
		if !ok {
			continue
		}
		if next := errors.Unwrap(err); next != nil {
			s.Add(next)
		}
		if many, ok := err.(interface{ Unwrap() []error }); ok {
			for _, next := range many.Unwrap() {
				s.Add(next)
			}
		}
	}
}

// RequireNone fails the test if a secret shows: any of its parts, as it is, in hexadecimal or in
// decimal digits. An empty sink fails too.
func (s *LogSink) RequireNone(t testing.TB, parts ...string) {
	t.Helper()
	text := s.String()
	require.NotEmpty(t, text)
	for _, part := range parts {
		for _, form := range []string{
			part, fmt.Sprintf("%x", part), fmt.Sprintf("%X", part), strings.Trim(fmt.Sprint([]byte(part)), "[]"),
			strings.Trim(fmt.Sprintf("%#v", []byte(part)), "[]byte{}"), base64.StdEncoding.EncodeToString([]byte(part)),
		} {
			if i := strings.Index(text, form); i >= 0 {
				require.FailNow(t, "a secret shows", text[max(0, i-200):min(len(text), i+200)])
			}
		}
	}
}
