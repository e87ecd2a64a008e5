//go:build !linux

package harness

import (
	"fmt"
	"os"
	"time"
)

var errNoBoard = fmt.Errorf("contended: memory and a clock that processes share: %w", ErrUnsupported)

func newBoard(int, int, int) (*board, string, error)  { return nil, "", errNoBoard }
func openBoard(string, int, int, int) (*board, error) { return nil, errNoBoard }
func (b *board) Close() error                         { return nil }
func now() int64                                      { return 0 }
func newPauser() (*pauser, error)                     { return nil, errNoBoard }

type pauser struct{}

func (*pauser) pause(time.Duration) error { return errNoBoard }
func (*pauser) Close() error              { return nil }

var sigStop, sigCont os.Signal = os.Kill, os.Kill
