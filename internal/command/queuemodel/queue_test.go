package queuemodel_test

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/command"
	"github.com/redlock-go/redlock/internal/command/queuemodel"
	"github.com/redlock-go/redlock/internal/realredis"
)

// tickets are those of the model, on the test's clock.
type tickets map[string]time.Time

func (t tickets) Left(id string) (int64, bool) {
	end, is := t[id]
	return time.Until(end).Milliseconds(), is
}
func (t tickets) Expire(id string, left int64) { t.Set(id, left) }
func (t tickets) Delete(id string)             { delete(t, id) }
func (t tickets) Set(id string, left int64) {
	t[id] = time.Now().Add(time.Duration(left) * time.Millisecond)
}

// TestModel: the script does on real servers what its model does.
func TestModel(t *testing.T) {
	realredis.EachKind(t, func(t *testing.T, kind realredis.Kind) {
		s := realredis.Start(t, realredis.Options{Kind: kind})
		c, err := net.Dial("tcp", s.Addr())
		require.NoError(t, err)
		defer c.Close()
		require.NoError(t, c.SetDeadline(time.Now().Add(30*time.Second)))
		in := bufio.NewReader(c)
		line := func() string {
			text, err := in.ReadString('\n')
			require.NoError(t, err)
			return text[:len(text)-2]
		}
		load, _ := command.AppendLoadQueue(nil)
		_, err = c.Write(load)
		require.NoError(t, err)
		require.Equal(t, "$40", line())
		require.Equal(t, command.QueueSHA1, line())

		random := rand.New(rand.NewPCG(1, 2))
		of := queuemodel.Lifetimes{Alone: command.AloneTicket.Milliseconds(), First: command.FirstTicket.Milliseconds(), Behind: command.BehindTicket.Milliseconds()}
		var q queuemodel.Queue
		model := tickets{}
		for step := range 600 {
			id := fmt.Sprint("p", random.IntN(5))
			if random.IntN(8) == 0 { // a ticket is over
				model.Delete(id)
				_, err = fmt.Fprintf(c, "DEL k:redlock:ticket:%s\r\n", id)
				require.NoError(t, err)
				line()
				continue
			}
			way := []command.Way{command.Enter, command.Enter, command.Again, command.Leave}[random.IntN(4)]
			buf, replies := command.AppendQueue(nil, "k", id, way)
			_, err = c.Write(buf)
			require.NoError(t, err)
			want := q.Run(way, id, of, model)
			require.Equal(t, "*4", line(), "step %d", step)
			var got [4]int64
			for i := range got {
				_, err := fmt.Sscanf(line(), ":%d", &got[i])
				require.NoError(t, err)
			}
			require.Equal(t, want[:3], got[:3], "step %d: %s %s", step, way, id)
			require.InDelta(t, want[3], got[3], 900, "step %d: %s %s", step, way, id)
			require.Equal(t, want[3] > 0, got[3] > 0)
			for range replies - 1 { // of CLIENT CACHING, an error without tracking, and of PTTL
				line()
			}
		}
	})
}
