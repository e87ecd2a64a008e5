//go:build !linux

package harness

import "os"

const errNoBoard = Unsupported("contended cells need memory and a clock that processes share")

func newBoard(int, int, int) (*board, string, error)  { return nil, "", errNoBoard }
func openBoard(string, int, int, int) (*board, error) { return nil, errNoBoard }
func (b *board) Close() error                         { return nil }
func now() int64                                      { return 0 }

var sigStop, sigCont os.Signal = os.Kill, os.Kill
