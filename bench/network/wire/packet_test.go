package wire

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestForgedPackets: their checksums are right, and they name the ends as the ends expect it.
func TestForgedPackets(t *testing.T) {
	p := header([]byte{10, 77, 0, 21}, []byte{10, 77, 0, 11}, protoTCP, tcpHeader+5)
	s := p.tcp()
	binary.BigEndian.PutUint16(s[0:], 40000)
	binary.BigEndian.PutUint16(s[2:], 6379)
	binary.BigEndian.PutUint32(s[4:], 1000)
	binary.BigEndian.PutUint32(s[8:], 2000)
	s[12], s[13] = 5<<4, flagACK
	assert.True(t, p.isOurs() && p.isTCP() && !p.isDial() && !p.isReset())
	forward, back := p.resets()
	assert.True(t, forward.isReset() && back.isReset())
	assert.Equal(t, p.connection(), back.connection())
	assert.Equal(t, uint32(1005), binary.BigEndian.Uint32(forward.tcp()[4:]), "the number behind the 5 bytes")
	assert.Equal(t, uint32(2000), binary.BigEndian.Uint32(back.tcp()[4:]))
	for _, q := range []packet{forward, back} {
		assert.Zero(t, checksum(q[:ipHeader]))
		pseudo := append(append([]byte{}, q[12:20]...), 0, protoTCP, 0, tcpHeader)
		assert.Zero(t, checksum(append(pseudo, q.tcp()...)))
	}
	u := p.unreachable(codes[Prohibited])
	assert.Equal(t, 21, u.to())
	assert.Zero(t, checksum(u[:ipHeader]))
	assert.Zero(t, checksum(u[ipHeader:]))
}
