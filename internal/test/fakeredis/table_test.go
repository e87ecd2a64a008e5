package fakeredis

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The table agrees with a map searched in the simplest way.
func TestTableAgreesWithAMap(t *testing.T) {
	type value struct {
		text    string
		expires int64
	}
	random := rand.New(rand.NewPCG(1, 2))
	table, model := newTable(StartN(t, 1)[0]), map[string]value{}
	for now := int64(1); now < 10_000; now += random.Int64N(2) {
		key := fmt.Sprint("key", random.IntN(300))
		expected, ok := model[key]
		if ok && expected.expires != never && now > expected.expires {
			delete(model, key)
			ok = false
		}
		e := table.get([]byte(key), now)
		require.Equal(t, ok, e != nil, "%s at %d", key, now)
		if ok {
			require.Equal(t, expected.text, string(e.value()))
			require.Equal(t, expected.expires, e.expires)
		}
		switch random.IntN(3) {
		case 0:
			next := value{text: fmt.Sprint("value", now)}
			if random.IntN(2) == 0 {
				next.expires = now + random.Int64N(500)
			}
			table.put(e, []byte(key), []byte(next.text), stringKind, next.expires, now)
			model[key] = next
		case 1:
			require.Equal(t, ok, table.del([]byte(key), now))
			delete(model, key)
		}
	}
	live := 0
	for _, v := range model {
		if v.expires == never || 10_000 <= v.expires {
			live++
		}
	}
	found := 0
	table.each(10_000, func(*entry) { found++ })
	assert.Equal(t, live, found)
}
