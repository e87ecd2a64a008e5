package refusal

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/resp"
)

// errorReplies are refusals of servers, with the error made of each.
var errorReplies = []struct {
	text  string
	cause error
	fatal bool
}{
	{"LOADING Redis is loading the dataset in memory", nil, false},
	{"READONLY You can't write against a read only replica.", ErrNotMaster, true},
	{"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", ErrNotMaster, true},
	{"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.", nil, false},
	{"OOM command not allowed when used memory > 'maxmemory'.", nil, false},
	{"NOREPLICAS Not enough good replicas to write.", nil, false},
	{"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.", nil, false},
	{"NOSCRIPT No matching script. Please use EVAL.", nil, false},
	{"NOAUTH Authentication required.", ErrAuth, true},
	{"WRONGPASS invalid username-password pair or user is disabled.", ErrAuth, true},
	{"NOPERM this user has no permissions to run the 'set' command", ErrForbidden, false},
	{"DENIED Redis is running in protected mode because protected mode is enabled", ErrProtected, true},
	{"MOVED 3999 127.0.0.1:6381", ErrCluster, true},
	{"ASK 3999 127.0.0.1:6381", ErrCluster, true},
	{"CROSSSLOT Keys in request don't hash to the same slot", ErrCluster, true},
	{"CLUSTERDOWN Hash slot not served", ErrCluster, true},
	{"TRYAGAIN Multiple keys request during rehashing of slot", ErrCluster, true},
	{"WRONGTYPE Operation against a key holding the wrong kind of value", nil, false},
	{"EXECABORT Transaction discarded because of previous errors.", nil, true},
	{"NOPROTO unsupported protocol version", nil, false},
	{"UNBLOCKED client unblocked via CLIENT UNBLOCK", nil, false},
	{"NEVERHEARDOF this", nil, false},
}

// plainReplies are the replies met by no script.
var plainReplies = []struct {
	text  string
	cause error
	fatal bool
}{
	{"ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?", ErrImpostor, true},
	{"ERR Client sent AUTH, but no password is set", ErrImpostor, true},
	{"ERR invalid password", ErrAuth, true},
	{"ERR max number of clients reached", ErrCrowded, true},
	{"ERR Protocol error: unauthenticated bulk length", nil, true},
	{"ERR unknown command 'DELEX', with args beginning with: 'k' 'IFEQ' 't' ", nil, false},
	{"ERR syntax error", nil, false},
	{"ERR", nil, false},
	{"", nil, false},
	{"ERR the max number of clients reached", nil, false},
}

// wrappings are the texts of scripts around the error of a command.
var wrappings = map[string]func(string) string{
	"plain": func(s string) string { return s },
	"Redis 7": func(s string) string {
		return s + " script: 7a58622f486f085f822ce9a29ee8435b9b1448ff, on @user_script:1."
	},
	"Valkey": func(s string) string { return s + " script: on @user_script:1." },
	"Redis 6": func(s string) string {
		return "ERR Error running script (call to f_7a58622f486f085f822ce9a29ee8435b9b1448ff): @user_script:1: @user_script: 1: -" + s
	},
	"Redis 2.6": func(s string) string {
		return "ERR Error running script (call to f_7a58622f486f085f822ce9a29ee8435b9b1448ff): @user_script:1: " + s
	},
	"pcall": func(s string) string { return "@user_script: 1: -" + s },
}

func read(text string) Refusal { return Read(&resp.Value{Kind: resp.Error, Bytes: []byte(text)}) }

func TestRefusal(t *testing.T) {
	covered := map[string]bool{}
	check := func(text, plain string, cause error, fatal bool) {
		r := read(text)
		err := r.Err
		assert.Equal(t, fatal, r.Fatal, text)
		var reply *ServerError
		require.ErrorAs(t, err, &reply, text)
		assert.Equal(t, newServerError([]byte(plain)).Code, reply.Code, text)
		for _, other := range []error{ErrAuth, ErrNotMaster, ErrCluster, ErrForbidden, ErrProtected, ErrCrowded, ErrImpostor} {
			assert.Equal(t, errors.Is(cause, other), errors.Is(err, other), "%v of %s", other, text)
		}
		covered[reply.Code] = true
	}
	for name, wrap := range wrappings {
		t.Run(name, func(t *testing.T) {
			for _, row := range errorReplies {
				check(wrap(row.text), row.text, row.cause, row.fatal)
			}
		})
	}
	for _, row := range plainReplies {
		check(row.text, row.text, row.cause, row.fatal)
	}
	for _, row := range fatal {
		assert.True(t, covered[row.code], row.code)
	}
}

// Of a refusal the error repeats the command and nothing else, and only if it looks like one.
func TestRefusalOfAPermission(t *testing.T) {
	for text, want := range map[string]string{
		"NOPERM this user has no permissions to run the 'set' command":                               "the command set",
		"NOPERM this user has no permissions to run the 'set' command or its subcommand":             "the command set",
		"NOPERM User key has no permissions to run the 'script|load' command":                        "the command script|load",
		"NOPERM User S3CR3T has no permissions to run the 'S3C R3T' command":                         "a command",
		"NOPERM User x has no permissions to run the '" + strings.Repeat("S3CR3T", 20) + "' command": "a command",
		"NOPERM User x has no permissions to run the 'S3CR3T":                                        "a command",
		"NOPERM this user has no permissions to access one of the keys used as arguments":            "a key",
		"NOPERM No permissions to access a key":                                                      "a key",
		"NOPERM User x has no permissions to access the 'S3CR3T' key":                                "a key",
		"NOPERM this user has no permissions to access one of the channels used as arguments":        "something that it does not name",
		"NOPERM S3CR3T": "something that it does not name",
		"ERR The user executing the script can't run this command or subcommand script: 74d, on @user_script:1.":                                                          "a command",
		"ERR The user executing the script can't access at least one of the keys mentioned in the command arguments script: 74d, on @user_script:1.":                      "a key",
		"ERR ACL failure in script: User S3CR3T has no permissions to run the 'mget' command script: 74d, on @user_script:1.":                                             "the command mget",
		"ERR ACL failure in script: No permissions to access a key script: on @user_script:1.":                                                                            "a key",
		"ERR Error running script (call to f_0): @user_script:1: @user_script: 1: The user executing the script can't run this command or subcommand":                     "a command",
		"ERR Error running script (call to f_0): @user_script:1: @user_script: 1: -NOPERM this user has no permissions to run the 'del' command or its subcommand S3CR3T": "the command del",
	} {
		r := read(text)
		assert.False(t, r.Fatal, text)
		assert.ErrorIs(t, r.Err, ErrForbidden, text)
		assert.EqualError(t, r.Err, "conn: forbidden by the server's access list: NOPERM for "+want, text)
		assert.Equal(t, want == "a key", r.OfKey, text)
		assert.Equal(t, want != "a key", r.Lacks, text)
	}
	for _, text := range []string{"ERR syntax error", "ERR unknown command 'NOPERM'", "WRONGTYPE NOPERM a key"} {
		assert.NotErrorIs(t, read(text).Err, ErrForbidden, text)
	}
}
