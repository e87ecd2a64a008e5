//go:build !linux || !(amd64 || arm64 || riscv64 || loong64)

package conn

import "errors"

const rawSupported = false

func newRawPoller(int) (poller, bool, error) { return nil, false, errors.ErrUnsupported }
