package conn

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"io"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// keyLog takes a server's traffic secret out of its key log.
type keyLog struct {
	mu     sync.Mutex
	secret []byte
}

func (l *keyLog) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f := bytes.Fields(line); string(f[0]) == "SERVER_TRAFFIC_SECRET_0" {
		l.secret, _ = hex.DecodeString(string(f[2]))
	}
	return len(line), nil
}

func (l *keyLog) last() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.secret
}

// generation is one direction of TLS 1.3 under one key, AES-128-GCM.
type generation struct {
	secret []byte
	aead   cipher.AEAD
	iv     []byte
	seq    uint64
}

// expand is HKDF-Expand-Label of RFC 8446, without a context.
func expand(secret []byte, label string, length int) []byte {
	label = "tls13 " + label
	info := binary.BigEndian.AppendUint16(nil, uint16(length))
	info = append(append(append(info, byte(len(label))), label...), 0)
	out, err := hkdf.Expand(sha256.New, secret, string(info), length)
	if err != nil {
		panic(err)
	}
	return out
}

func newGeneration(secret []byte) *generation {
	block, err := aes.NewCipher(expand(secret, "key", 16))
	if err != nil {
		panic(err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(err)
	}
	return &generation{secret: secret, aead: aead, iv: expand(secret, "iv", 12)}
}

// next is the generation behind a KeyUpdate.
func (g *generation) next() *generation { return newGeneration(expand(g.secret, "traffic upd", 32)) }

func (g *generation) nonce() []byte {
	nonce := bytes.Clone(g.iv)
	low := nonce[len(nonce)-8:]
	binary.BigEndian.PutUint64(low, binary.BigEndian.Uint64(low)^g.seq)
	return nonce
}

// open decrypts a record, if it is of this generation.
func (g *generation) open(header, body []byte) (inner []byte, mine bool) {
	inner, err := g.aead.Open(nil, g.nonce(), body, header)
	if err == nil {
		g.seq++
	}
	return inner, err == nil
}

// seal makes a record of an inner plaintext, which ends with its type.
func (g *generation) seal(inner []byte) []byte {
	header := binary.BigEndian.AppendUint16([]byte{23, 3, 3}, uint16(len(inner)+g.aead.Overhead()))
	record := g.aead.Seal(header[:5:5], g.nonce(), inner, header)
	g.seq++
	return record
}

// Messages to come between two records: content, and the record's type.
var (
	keyUpdate          = []byte{24, 0, 0, 1, 0, 22}
	keyUpdateRequested = []byte{24, 0, 0, 1, 1, 22}
	ticket             = []byte{4, 0, 0, 16, 0, 0, 14, 16, 1, 2, 3, 4, 1, 9, 0, 2, 7, 7, 0, 0, 22}
	fatalAlert         = []byte{2, 40, 21}
)

// rekey passes a server's records on, and before each of the application's has
// its say: meddle returns what else to send there.
func rekey(log *keyLog, meddle func(record int) [][]byte) func(client io.Writer, server io.Reader) {
	return func(client io.Writer, server io.Reader) {
		var theirs, ours *generation
		count := 0
		for {
			header := make([]byte, 5)
			if _, err := io.ReadFull(server, header); err != nil {
				return
			}
			body := make([]byte, binary.BigEndian.Uint16(header[3:]))
			if _, err := io.ReadFull(server, body); err != nil {
				return
			}
			out := append(header[:5:5], body...)
			if secret := log.last(); theirs == nil && secret != nil {
				theirs, ours = newGeneration(secret), newGeneration(secret)
			}
			if theirs != nil {
				if inner, mine := theirs.open(header, body); mine {
					out = nil
					for _, message := range meddle(count) {
						out = append(out, ours.seal(message)...)
						if message[0] == keyUpdate[0] {
							ours = ours.next()
						}
					}
					out = append(out, ours.seal(inner)...)
					count++
				}
			}
			if _, err := client.Write(out); err != nil {
				return
			}
		}
	}
}

// meddledWith is a rig of one node, with somebody between it and its server.
func meddledWith(t *testing.T, meddle func(record int) [][]byte) (*rig, *wire) {
	t.Helper()
	us, log := newAuthority(t), new(keyLog)
	config := us.serves(here)
	config.MinVersion, config.KeyLogWriter = tls.VersionTLS13, log
	server := newPeer(t, func(p *peer) { p.tls = config })
	p := newTap(t, server.addr, func(p *tap) { p.back = rekey(log, meddle) })
	r := tapped(t, p, true, us.trusted())
	w := server.next(t)
	if suite := w.Conn.(*tls.Conn).ConnectionState().CipherSuite; suite != tls.TLS_AES_128_GCM_SHA256 {
		t.Skip("this machine prefers ", tls.CipherSuiteName(suite))
	}
	r.until("for the node behind the tap", func() bool { return r.Up(0) })
	return r, w
}

// New keys and tickets may come between any two records, also in the middle of a
// reply, and ask for new keys in the other direction, which is being written to
// at the same time.
func TestKeyUpdateInMidReply(t *testing.T) {
	var records atomic.Int64
	r, w := meddledWith(t, func(record int) [][]byte {
		records.Add(1)
		return [][][]byte{{keyUpdate}, {keyUpdateRequested}, {ticket}, {keyUpdate, ticket, keyUpdateRequested}, nil}[record%5]
	})
	s := r.socket(0)
	for range 20 {
		l := r.sendTo(0, tagsOf(3)...)
		w.expect(string(l.Buf))
		behind := r.sendTo(0, "behind") // under the old key or the new
		whole := echoes(l.tags...)
		for i := 0; i < len(whole); i += 7 {
			w.send(whole[i:min(i+7, len(whole))])
		}
		w.expect(string(behind.Buf))
		w.send(echoes("behind"))
		r.settle(l, behind)
		require.NoError(t, l.errOf(0))
		require.NoError(t, behind.errOf(0))
	}
	assert.Same(t, s, r.socket(0))
	assert.Greater(t, records.Load(), int64(100))
}

// An alert in the middle of a reply ends the connection at once, with TLS's word
// for it.
func TestAlertInMidReply(t *testing.T) {
	var spoilt atomic.Bool
	r, w := meddledWith(t, func(int) [][]byte {
		if spoilt.Load() {
			return [][]byte{fatalAlert}
		}
		return nil
	})
	l := r.sendTo(0, "first", "second")
	w.expect(string(l.Buf))
	whole := echoes(l.tags...)
	w.send(whole[:len(whole)-3])
	r.until("for the first reply", func() bool { return l.nodes[0].replies == 1 })
	spoilt.Store(true)
	w.send(whole[len(whole)-3:])
	r.settle(l)
	assert.True(t, alerted("handshake failure")(l.errOf(0)), "%v", l.errOf(0))
	assert.NotErrorIs(t, l.errOf(0), ErrNotSent)
}
