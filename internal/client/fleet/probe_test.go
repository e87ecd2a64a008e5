package fleet

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/wire/command"
	"github.com/redlock-go/redlock/resp"
)

var (
	scriptsOnly = Form(command.Scripts)
	valkey      = Form(command.DelIfEq)
	redis84     = Form(command.DelEx)
)

// Access lists of all kinds, down to the least that each form needs.
func TestFormsWithinAccessLists(t *testing.T) {
	const (
		redis7 = fakeredis.Redis7
		v9     = fakeredis.Valkey9
		r84    = fakeredis.Redis84
	)
	scripts := []string{"EVAL", "EVALSHA", "SCRIPT"}
	least := []string{"CLIENT", "INFO", "DEL"}
	for name, test := range map[string]struct {
		flavor fakeredis.Flavor
		deny   []string
		keys   string
		loaded bool // by an administrator
		force  bool // Config.Scripted
		want   Form
		lacks  string // or else what is missing
	}{
		"all of Redis 7":            {flavor: redis7, want: scriptsOnly},
		"all of Redis 8.4":          {flavor: r84, want: redis84},
		"all of Valkey 9":           {flavor: v9, want: valkey},
		"forced":                    {flavor: v9, force: true, want: scriptsOnly},
		"forced, within keys":       {flavor: v9, force: true, keys: "lk:", want: scriptsOnly},
		"forced, without scripts":   {flavor: v9, force: true, deny: scripts, lacks: "script|load"},
		"no scripts in Redis 7":     {flavor: redis7, deny: scripts, lacks: "script|load"},
		"no scripts in Redis 8.4":   {flavor: r84, deny: scripts, lacks: "script|load"},
		"no scripts in Valkey 9":    {flavor: v9, deny: scripts, lacks: "script|load"},
		"the least of Redis 8.4":    {flavor: r84, deny: least, keys: "lk:", want: redis84},
		"the least of Valkey 9":     {flavor: v9, deny: least, keys: "lk:", want: valkey},
		"keys of Redis 7":           {flavor: redis7, keys: "lk:", want: scriptsOnly},
		"no DELIFEQ":                {flavor: v9, deny: []string{"DELIFEQ"}, want: scriptsOnly},
		"no DELEX, within keys":     {flavor: r84, deny: []string{"DELEX"}, keys: "lk:", want: scriptsOnly},
		"no DELIFEQ and no scripts": {flavor: v9, deny: append([]string{"DELIFEQ"}, scripts...), lacks: "script|load"},
		"no EVALSHA":                {flavor: redis7, deny: []string{"EVALSHA"}, lacks: "evalsha"},
		"no EVALSHA in Valkey":      {flavor: v9, deny: []string{"EVALSHA"}, lacks: "evalsha"},
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
					cfg.Probes = func(ask func(func(*resp.Value) error, ...string)) func() uint16 {
						return command.NewProbes(test.force, nil, ask).Form
					}
					if test.lacks == "select" {
						cfg.Addresses[0].Database = 1
					}
				})
				r.AwaitFirstDials()
				r.do(func() {
					if test.lacks == "" {
						require.NoError(t, r.Fault(0))
						assert.Equal(t, test.want, r.nodes[0].id.form)
						return
					}
					err := r.Fault(0)
					require.ErrorIs(t, err, conn.ErrForbidden)
					assert.ErrorIs(t, err, conn.ErrNotSent)
					assert.False(t, misconfigured(err))
					if password == "" || test.lacks != "mget" && test.lacks != "a command" { // the server's words
						assert.ErrorContains(t, err, test.lacks)
					}
				})
				assert.Zero(t, server.Len(), "the probes have left something behind")
			}
		})
	}
}
