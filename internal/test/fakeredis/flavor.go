package fakeredis

// Flavor is the dialect a server speaks.
type Flavor uint8

const (
	// Redis7 is Redis 7.0: locks are released and extended by scripts only.
	Redis7 Flavor = iota
	// Valkey9 adds DELIFEQ.
	Valkey9
	// Redis84 adds DELEX … IFEQ.
	Redis84
)

// String names the flavor as its server names itself.
func (f Flavor) String() string { return dialects[f].product + " " + dialects[f].version }

// dialect is the differences between servers visible to a lock client. Redis7 and Valkey9 were read
// off running servers, Redis84 off one of Redis 8.0; only the addition of 8.4, DELEX, was never
// compared with a server.
type dialect struct {
	product   string
	version   string
	modules   []module // built in; listed by HELLO
	redisName string   // in Valkey redis_version is another version
	modeField string   // of INFO

	clientInfo   bool // CLIENT knows SETINFO
	scriptsByIDs bool // an error inside a script names the digest

	noScript string
	noAuth   string // of HELLO

	// The answer of the access list, before and after the name of the command.
	noPermission   [2]string
	noScriptAccess [2]string // inside a script; not the code NOPERM
	noKeyAccess    string
}

type module struct{ name, path string }

const (
	oldHelloAuth = "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time"
	newHelloAuth = "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time"
)

var dialects = [...]dialect{
	Redis7: {
		product:        "redis",
		version:        "7.0.15",
		redisName:      "7.0.15",
		modeField:      "redis_mode",
		scriptsByIDs:   true,
		noScript:       "NOSCRIPT No matching script. Please use EVAL.",
		noAuth:         oldHelloAuth,
		noPermission:   [2]string{"NOPERM this user has no permissions to run the '", "' command"},
		noScriptAccess: [2]string{"ERR The user executing the script can't run this command or subcommand", ""},
		noKeyAccess:    "NOPERM this user has no permissions to access one of the keys used as arguments",
	},
	Valkey9: {
		product:        "valkey",
		version:        "9.1.2",
		modules:        []module{{name: "lua", path: "lua"}},
		redisName:      "7.2.4",
		modeField:      "server_mode",
		clientInfo:     true,
		noScript:       "NOSCRIPT No matching script.",
		noAuth:         newHelloAuth,
		noPermission:   [2]string{"NOPERM User %u has no permissions to run the '", "' command"},
		noScriptAccess: [2]string{"ERR ACL failure in script: User %u has no permissions to run the '", "' command"},
		noKeyAccess:    "NOPERM No permissions to access a key",
	},
	Redis84: {
		product:        "redis",
		version:        "8.4.0",
		modules:        []module{{name: "vectorset"}},
		redisName:      "8.4.0",
		modeField:      "redis_mode",
		clientInfo:     true,
		scriptsByIDs:   true,
		noScript:       "NOSCRIPT No matching script. Please use EVAL.",
		noAuth:         newHelloAuth,
		noPermission:   [2]string{"NOPERM User %u has no permissions to run the '", "' command"},
		noScriptAccess: [2]string{"ERR ACL failure in script: User %u has no permissions to run the '", "' command"},
		noKeyAccess:    "NOPERM No permissions to access a key",
	},
}
