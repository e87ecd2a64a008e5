//go:build !linux || !(amd64 || arm64 || riscv64 || loong64)

package conn

import "errors"

const rawSupported = false

func newRawPoller() (poller, error) { return nil, errors.ErrUnsupported }
