package wire

import (
	"encoding/binary"
	"slices"
)

// packet is one of IPv4, as the hosts send it.
type packet []byte

// Lengths of headers, protocols and flags.
const (
	ipHeader  = 20
	tcpHeader = 20
	protoICMP = 1
	protoTCP  = 6
	flagFIN   = 1
	flagSYN   = 2
	flagRST   = 4
	flagACK   = 16
)

// isOurs reports whether p is a packet from one host to another.
func (p packet) isOurs() bool {
	return len(p) >= ipHeader && p[0]>>4 == 4 && p[16] == 10 && p[17] == 77 && int(p[15]) < Hosts && int(p[19]) < Hosts
}

func (p packet) to() int      { return int(p[19]) }
func (p packet) tcp() packet  { return p[int(p[0]&15)*4:] }
func (p packet) isTCP() bool  { return p[9] == protoTCP && len(p) >= int(p[0]&15)*4+tcpHeader }
func (p packet) isDial() bool { return p.isTCP() && p.tcp()[13]&(flagSYN|flagACK) == flagSYN }
func (p packet) isReset() bool {
	return p.isTCP() && p.tcp()[13]&flagRST != 0
}

// connection names the connection of a packet, for both directions alike.
type connection struct{ a, b [6]byte }

func (p packet) connection() (c connection) {
	copy(c.a[:], p[12:16])
	copy(c.a[4:], p.tcp()[0:2])
	copy(c.b[:], p[16:20])
	copy(c.b[4:], p.tcp()[2:4])
	if slices.Compare(c.a[:], c.b[:]) > 0 {
		c.a, c.b = c.b, c.a
	}
	return c
}

// resets are the two that the ends of a connection accept: the one that follows p, and the one that answers it.
func (p packet) resets() (forward, back packet) {
	t := p.tcp()
	sequence, acknowledged := binary.BigEndian.Uint32(t[4:]), binary.BigEndian.Uint32(t[8:])
	end := sequence + uint32(int(binary.BigEndian.Uint16(p[2:]))-int(p[0]&15)*4-int(t[12]>>4)*4)
	if t[13]&(flagSYN|flagFIN) != 0 {
		end++
	}
	forward = segment(p[12:16], p[16:20], t[0:2], t[2:4], end, acknowledged)
	back = segment(p[16:20], p[12:16], t[2:4], t[0:2], acknowledged, end)
	return forward, back
}

// segment is a reset from one end to another.
func segment(from, to, fromPort, toPort []byte, sequence, acknowledged uint32) packet {
	p := header(from, to, protoTCP, tcpHeader)
	t := p[ipHeader:]
	copy(t[0:], fromPort)
	copy(t[2:], toPort)
	binary.BigEndian.PutUint32(t[4:], sequence)
	binary.BigEndian.PutUint32(t[8:], acknowledged)
	t[12], t[13] = tcpHeader/4<<4, flagRST|flagACK
	pseudo := slices.Concat(from, to, []byte{0, protoTCP, 0, tcpHeader})
	binary.BigEndian.PutUint16(t[16:], checksum(slices.Concat(pseudo, t)))
	return p
}

// unreachable is the answer of a router or firewall to p: destination unreachable, with a code.
func (p packet) unreachable(code byte) packet {
	quoted := p[:min(len(p), int(p[0]&15)*4+8)]
	q := header(p[16:20], p[12:16], protoICMP, 8+len(quoted))
	body := q[ipHeader:]
	body[0], body[1] = 3, code
	copy(body[8:], quoted)
	binary.BigEndian.PutUint16(body[2:], checksum(body))
	return q
}

// header is a packet with room for a body.
func header(from, to []byte, protocol byte, body int) packet {
	p := make(packet, ipHeader+body)
	p[0], p[8], p[9] = 0x45, 64, protocol
	binary.BigEndian.PutUint16(p[2:], uint16(len(p)))
	copy(p[12:], from)
	copy(p[16:], to)
	binary.BigEndian.PutUint16(p[10:], checksum(p[:ipHeader]))
	return p
}

// checksum is that of RFC 1071.
func checksum(b []byte) uint16 {
	sum := uint32(0)
	for i := range b {
		sum += uint32(b[i]) << (8 * (1 - i%2))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}
