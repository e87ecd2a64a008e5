package conn

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/rules/fencing"
	"github.com/redlock-go/redlock/internal/wire/command"
	"github.com/redlock-go/redlock/resp"
)

// TestLongestAnswersFit: the longest answer of each script to the largest call fits the buffer and the bounds of a
// connection. Else a healthy node would be cut off for what it was asked.
func TestLongestAnswersFit(t *testing.T) {
	bulk := func(text string) string { return "$" + strconv.Itoa(len(text)) + "\r\n" + text + "\r\n" }
	code := func(c fencing.Code, text string) string {
		return "*2\r\n:" + strconv.Itoa(int(c)) + "\r\n" + bulk(text)
	}
	each := func(answer string) string {
		return "*" + strconv.Itoa(command.MaxKeys) + "\r\n" + strings.Repeat(answer, command.MaxKeys)
	}
	token := strconv.FormatUint(uint64(fencing.MaxToken), 10)
	two := strings.Repeat("n", 64) + ",group-63-of-64+" + strings.Repeat("m", 64) + ",group-63-of-64" // names of configurations
	run, nonce := strings.Repeat("r", 40), two+"/"+strings.Repeat("f", 32)+"."+token
	marker := fencing.Marker{Phase: fencing.Voting, Me: fencing.Me{Fleet: two, Run: run}, Nonce: nonce}.String()
	number := ":" + strconv.FormatInt(math.MinInt64, 10) + "\r\n"
	for script, answer := range map[string]string{
		"release, extend, those of shared locks": each(":2\r\n"),
		"fenced acquire":                         each(code(fencing.Stale, token)),
		"fenced: the node has no vote":           code(fencing.Foreign, marker),
		"member":                                 code(fencing.Foreign, token+" "+marker),
		"queue":                                  "*4\r\n" + strings.Repeat(number, 4),
		"holders of a shared lock":               bulk(token + strings.Repeat("x", 4000)), // as the script counts
	} {
		s := stream{in: []byte(answer), w: len(answer), decoder: newDecoder(0)}
		require.LessOrEqual(t, len(answer), readBuffer, script)
		require.NoError(t, s.next(), script)
		require.Equal(t, len(answer), s.r, script)
		require.NotEqual(t, resp.Error, s.value.Kind, script)
	}
}
