package session

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/resp"
)

// commandsIn returns the commands at the start of bytes arriving in pieces of a size, and why there are no more.
func commandsIn(data []byte, piece int) (all [][]string, err error) {
	with := &tools{decoder: resp.Decoder{Limits: resp.Limits{Bulk: 64, Elements: 8, Depth: 1}}}
	for from, to := 0, 0; ; {
		i := input{tools: with, buf: data[:to]}
		args, n, err := i.next(from)
		switch {
		case err != nil:
			return all, err
		case n > 0:
			from += n
			if len(args) > 0 {
				all = append(all, args)
			}
		case to == len(data):
			return all, nil
		default:
			to = min(to+piece, len(data))
		}
	}
}

// FuzzRead: no bytes crash the reader or exceed its limits, and their meaning does not depend on
// the pieces of their arrival.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n", "PING\r\n", "*1\r\n$4\r\nPING\r\n\r\nGET k\n", "*0\r\n*-1\r\n*1\r\n$-1\r\n",
		"*3\r\n$3\r\nSET\r\n$9223372036854775807\r\n", "*1000000000\r\n", "*1\r\n*1\r\n$1\r\na\r\n", "*1\r\n:1\r\n", "GET \"a b\"\r\n",
	} {
		f.Add([]byte(seed), byte(1))
	}
	f.Fuzz(func(t *testing.T, data []byte, piece byte) {
		whole, err := commandsIn(data, len(data)+1)
		pieces, pieceErr := commandsIn(data, int(piece)+1)
		require.Equal(t, whole, pieces)
		require.Equal(t, err, pieceErr)
		for _, args := range whole {
			for _, arg := range args {
				require.LessOrEqual(t, len(arg), maxInline)
			}
		}
		if err != nil {
			require.ErrorAs(t, err, new(protocolError))
		}
	})
}
