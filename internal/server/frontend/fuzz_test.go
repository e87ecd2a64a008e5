package frontend

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/server/session"
)

// FuzzPlan: no command crashes its plan. Each is answered or runs, and none without a lock's name runs.
func FuzzPlan(f *testing.F) {
	for name := range commands {
		f.Add(name + " k v 1 2 3")
		f.Add("MULTI\n" + name + "\nEXEC")
	}
	for _, line := range []string{
		"SET k v NX PX 100", "SET k v IFEQ v EX 9223372036854775807", "SET k v PXAT 1 XX", "HELLO 3 AUTH a b SETNAME c",
		"EVAL return 1 k", "EVALSHA 00 -1 k", "RL.LOCK k 1 WAIT 5 KEEP VALUE v", "BLPOP lock-signal:a 1e300", "EXPIRE k -9223372036854775808 GT", "TTL ", "SUBSCRIBE a b\nGET k\nPING\nUNSUBSCRIBE",
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c := newConn(New(Config{}), 1, nil, nil)
		defer c.Gone()
		for line := range strings.SplitSeq(text, "\n") {
			args := strings.Split(line, " ")
			var r session.Reply
			plan := c.Plan(args, &r)
			if plan.Run == nil && !plan.Close {
				require.NotZero(t, r.Len(), line)
			}
			if plan.Run != nil && !plan.Alone && !slices.Contains(args, "") {
				require.NotEmpty(t, plan.Key, line)
			}
		}
	})
}
