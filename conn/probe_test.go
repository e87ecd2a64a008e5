package conn

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/fakeredis"
	"github.com/redlock-go/redlock/internal/testkit/scripted"
)

var (
	scriptsOnly = Dialect{}
	valkey      = Dialect{ReleaseDelIfEq, ExtendSetIfEq}
	redis84     = Dialect{ReleaseDelEx, ExtendSetIfEq}
)

// On the wire, under any name of the server.
func TestDialectIsFoundByAsking(t *testing.T) {
	const (
		zero      = ":0\r\n"
		syntax    = "-ERR syntax error\r\n"
		noCommand = "-NOPERM User x has no permissions to run the 'this' command\r\n"
		oldKey    = "-NOPERM this user has no permissions to access one of the keys used as arguments\r\n"
		noKey     = "-NOPERM No permissions to access a key\r\n"
	)
	for name, test := range map[string]struct {
		delifeq, delex, set string
		want                Dialect
	}{
		"Redis 7":                 {scripted.Unknown, scripted.Unknown, syntax, scriptsOnly},
		"Redis 8.4":               {scripted.Unknown, zero, "_\r\n", redis84},
		"Valkey 8.1":              {scripted.Unknown, scripted.Unknown, "_\r\n", Dialect{ReleaseScript, ExtendSetIfEq}},
		"Valkey 9.0":              {zero, scripted.Unknown, "_\r\n", valkey},
		"Valkey 9.2":              {zero, zero, "_\r\n", valkey},
		"RESP2 null":              {zero, scripted.Unknown, "$-1\r\n", valkey},
		"the key was there":       {":1\r\n", scripted.Unknown, "+OK\r\n", valkey},
		"a negative number":       {scripted.Unknown, ":-1\r\n", "_\r\n", redis84},
		"no DELIFEQ":              {noCommand, scripted.Unknown, "_\r\n", Dialect{ReleaseScript, ExtendSetIfEq}},
		"no DELIFEQ but DELEX":    {noCommand, zero, "_\r\n", redis84},
		"no SET":                  {zero, scripted.Unknown, noCommand, Dialect{ReleaseDelIfEq, ExtendScript}},
		"keys are out of bounds":  {noKey, scripted.Unknown, noKey, valkey},
		"so they are in 8.4":      {scripted.Unknown, noKey, noKey, redis84},
		"so they are in 7":        {scripted.Unknown, scripted.Unknown, oldKey, scriptsOnly},
		"nothing but the release": {noKey, scripted.Unknown, syntax, Dialect{ReleaseDelIfEq, ExtendScript}},
		"out of memory":           {zero, scripted.Unknown, "-OOM command not allowed\r\n", Dialect{ReleaseDelIfEq, ExtendScript}},
		"disk is full":            {"-MISCONF\r\n", "-MISCONF\r\n", "-MISCONF\r\n", scriptsOnly},
		"busy":                    {"-BUSY\r\n", scripted.Unknown, "-BUSY\r\n", scriptsOnly},
	} {
		t.Run(name, func(t *testing.T) {
			p := scripted.New(t, answers("DELIFEQ", test.delifeq), answers("DELEX", test.delex), answers("SET", test.set))
			r := newTestFleet(t, false, []*scripted.Server{p})
			r.up()
			r.do(func() { assert.Equal(t, test.want, r.nodes[0].id.dialect) })
			r.works()
		})
	}
}

// Access lists of all kinds, down to the least that each dialect needs.
func TestDialectWithinAccessLists(t *testing.T) {
	const (
		redis7 = fakeredis.Redis7
		v9     = fakeredis.Valkey9
		r84    = fakeredis.Redis84
	)
	scripts := []string{"EVAL", "EVALSHA", "SCRIPT"}
	least := append([]string{"CLIENT", "INFO", "MGET", "DEL", "PEXPIRE"}, scripts...)
	for name, test := range map[string]struct {
		flavor fakeredis.Flavor
		deny   []string
		keys   string
		loaded bool // by an administrator
		force  bool // Config.Scripted
		want   Dialect
		lacks  string // or else what is missing
	}{
		"all of Redis 7":            {flavor: redis7, want: scriptsOnly},
		"all of Redis 8.4":          {flavor: r84, want: redis84},
		"all of Valkey 9":           {flavor: v9, want: valkey},
		"forced":                    {flavor: v9, force: true, want: scriptsOnly},
		"forced, within keys":       {flavor: v9, force: true, keys: "lk:", want: scriptsOnly},
		"forced, without scripts":   {flavor: v9, force: true, deny: scripts, lacks: "script|load"},
		"no scripts in Redis 7":     {flavor: redis7, deny: scripts, lacks: "script|load"},
		"no scripts in Redis 8.4":   {flavor: r84, deny: scripts, want: redis84},
		"no scripts in Valkey 9":    {flavor: v9, deny: scripts, want: valkey},
		"the least of Redis 8.4":    {flavor: r84, deny: least, keys: "lk:", want: redis84},
		"the least of Valkey 9":     {flavor: v9, deny: least, keys: "lk:", want: valkey},
		"keys of Redis 7":           {flavor: redis7, keys: "lk:", want: scriptsOnly},
		"no DELIFEQ":                {flavor: v9, deny: []string{"DELIFEQ"}, want: Dialect{ReleaseScript, ExtendSetIfEq}},
		"no DELEX, within keys":     {flavor: r84, deny: []string{"DELEX"}, keys: "lk:", want: scriptsOnly},
		"no DELIFEQ and no scripts": {flavor: v9, deny: append([]string{"DELIFEQ"}, scripts...), lacks: "script|load"},
		"no SET":                    {flavor: v9, deny: []string{"SET"}, want: Dialect{ReleaseDelIfEq, ExtendScript}},
		"no EVALSHA":                {flavor: redis7, deny: []string{"EVALSHA"}, lacks: "evalsha"},
		"no EVALSHA, none needed":   {flavor: v9, deny: []string{"EVALSHA"}, want: valkey},
		"no MGET":                   {flavor: redis7, deny: []string{"MGET"}, lacks: "a command"},
		"no MGET in Valkey":         {flavor: v9, deny: []string{"MGET", "DELIFEQ"}, lacks: "mget"},
		"no loading":                {flavor: redis7, deny: []string{"SCRIPT|LOAD"}, lacks: "script|load"},
		"no loading, but loaded":    {flavor: redis7, deny: []string{"SCRIPT"}, loaded: true, want: scriptsOnly},
		"the same within keys":      {flavor: redis7, deny: []string{"SCRIPT"}, keys: "lk:", want: scriptsOnly},
		"no calling what is loaded": {flavor: redis7, deny: []string{"SCRIPT", "EVALSHA"}, loaded: true, lacks: "script|load"},
		"no SELECT":                 {flavor: redis7, deny: []string{"SELECT"}, lacks: "select"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, password := range []string{"", marked} {
				server := fakeredis.StartN(t, 1, fakeredis.Options{Flavor: test.flavor, Deny: test.deny, Password: password})[0]
				server.AllowKeys(test.keys)
				if test.loaded {
					server.LoadScripts()
				}
				r := newTestFleet(t, false, nil, onServer(server), with("", password, 0), func(cfg *Config) {
					if cfg.Scripted = test.force; test.lacks == "select" {
						cfg.Addresses[0].Database = 1
					}
				})
				r.Settle()
				r.do(func() {
					if test.lacks == "" {
						require.NoError(t, r.Fault(0))
						assert.Equal(t, test.want, r.nodes[0].id.dialect)
						return
					}
					err := r.Fault(0)
					require.ErrorIs(t, err, ErrForbidden)
					assert.ErrorIs(t, err, ErrNotSent)
					assert.False(t, Misconfigured(err))
					if password == "" || test.lacks != "mget" && test.lacks != "a command" { // the server's words
						assert.ErrorContains(t, err, test.lacks)
					}
				})
				assert.Zero(t, server.Len(), "the probes have left something behind")
			}
		})
	}
}

// Only what a node cannot do without must be loaded, and must be right.
func TestScriptsThatFail(t *testing.T) {
	native := func(p *scripted.Server) {
		answers("DELIFEQ", ":0\r\n")(p)
		answers("SET", "_\r\n")(p)
	}
	for name, test := range map[string]struct {
		set  func(*scripted.Server)
		load string
		all  bool // nodes of any dialect are refused
	}{
		"unknown":     {load: scripted.Unknown},
		"forbidden":   {load: "-NOPERM User x has no permissions to run the 'script|load' command\r\n"},
		"busy":        {load: "-BUSY Redis is busy\r\n"},
		"other":       {load: "$3\r\nabc\r\n", all: true},
		"no password": {load: "-NOAUTH Authentication required.\r\n", all: true},
	} {
		t.Run(name, func(t *testing.T) {
			ps := []*scripted.Server{scripted.New(t, answers("SCRIPT", test.load)), scripted.New(t, native, answers("SCRIPT", test.load))}
			r := newTestFleet(t, false, ps, func(cfg *Config) { cfg.Scripts[0].For = ForRelease })
			r.Settle()
			r.do(func() {
				assert.Error(t, r.Fault(0))
				assert.Equal(t, test.all, r.Fault(1) != nil, r.Fault(1))
			})
		})
	}
}

// An EVALSHA that fails for a passing reason does not keep a node away.
func TestScriptProbesThatFail(t *testing.T) {
	for answer, want := range map[string]error{
		"*1\r\n:0\r\n": nil,
		"-NOPERM No permissions to access a key\r\n":                                                                     nil,
		"-BUSY Redis is busy running a script.\r\n":                                                                      nil,
		"-NOSCRIPT No matching script.\r\n":                                                                              nil,
		"-NOPERM User x has no permissions to run the 'evalsha' command\r\n":                                             ErrForbidden,
		"-ERR ACL failure in script: User x has no permissions to run the 'mget' command script: on @user_script:1.\r\n": ErrForbidden,
		"-CLUSTERDOWN Hash slot not served\r\n":                                                                          ErrCluster,
	} {
		// The peer's handshake ends with a SCRIPT, so the one of interest is
		// the first of two.
		p := scripted.New(t, answers("EVALSHA", answer), func(p *scripted.Server) { p.Scripts = 2 })
		r := newTestFleet(t, false, []*scripted.Server{p}, func(cfg *Config) {
			probed := testScript
			probed.Probe = []string{"0"}
			cfg.Scripts = []Script{probed, testScript}
		})
		r.Settle()
		r.do(func() { assert.ErrorIs(t, r.Fault(0), want, answer) })
	}
}
