package luascript

import (
	bytesof "encoding/binary"
	"encoding/hex"
	"math/bits"
)

// sha1Hex is the SHA-1 of a text in lower-case hex, as in FIPS 180-4. Scripts are named by it, and nothing is
// protected. crypto/sha1 refuses to work in a program that allows only approved algorithms (GODEBUG=fips140=only).
func sha1Hex(text []byte) string {
	const block = 64
	padded := append(append(make([]byte, 0, len(text)+2*block), text...), 0x80)
	for len(padded)%block != block-8 {
		padded = append(padded, 0)
	}
	padded = bytesof.BigEndian.AppendUint64(padded, uint64(len(text))*8)
	h := [5]uint32{0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0}
	for ; len(padded) > 0; padded = padded[block:] {
		var w [80]uint32
		for i := range 16 {
			w[i] = bytesof.BigEndian.Uint32(padded[4*i:])
		}
		for i := 16; i < len(w); i++ {
			w[i] = bits.RotateLeft32(w[i-3]^w[i-8]^w[i-14]^w[i-16], 1)
		}
		a, b, c, d, e := h[0], h[1], h[2], h[3], h[4]
		for i := range w {
			var f, k uint32
			switch i / 20 {
			case 0:
				f, k = b&c|^b&d, 0x5A827999
			case 1:
				f, k = b^c^d, 0x6ED9EBA1
			case 2:
				f, k = b&c|b&d|c&d, 0x8F1BBCDC
			default:
				f, k = b^c^d, 0xCA62C1D6
			}
			a, b, c, d, e = bits.RotateLeft32(a, 5)+f+e+k+w[i], a, bits.RotateLeft32(b, 30), c, d
		}
		h[0], h[1], h[2], h[3], h[4] = h[0]+a, h[1]+b, h[2]+c, h[3]+d, h[4]+e
	}
	var sum [20]byte
	for i, word := range h {
		bytesof.BigEndian.PutUint32(sum[4*i:], word)
	}
	return hex.EncodeToString(sum[:])
}
