package resp

import (
	"errors"
	"math/big"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// A node is a decoded frame that owns everything in it, for comparing.
type node struct {
	Kind  Kind
	Null  bool
	Int   int64
	Bytes string
	Nodes []node
}

func tree(v *Value) node {
	n := node{Kind: v.Kind, Null: v.Null, Int: v.Int, Bytes: string(v.Bytes)}
	it := v.Elements()
	for it.Next() {
		n.Nodes = append(n.Nodes, tree(it.Value()))
	}
	return n
}

var (
	errShort = errors.New("reference: incomplete")
	errBad   = errors.New("reference: malformed")
)

var (
	decimal  = regexp.MustCompile(`^(0|-?[1-9][0-9]*)$`)
	fraction = regexp.MustCompile(`^(inf|-inf|nan|-?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?)$`)
	least    = big.NewInt(-1 << 63)
	greatest = big.NewInt(1<<63 - 1)
)

// A reference is the other decoder, which the tests compare with: recursive,
// wasteful, bytewise, with the syntax of numbers in regular expressions. It
// takes no part of package resp but the constants. Limits have to be positive.
type reference struct {
	lim      Limits
	buf      string
	at       int
	elements int
}

func referenceDecode(buf []byte, lim Limits) (n int, root node, err error) {
	r := reference{lim: lim, buf: string(buf)}
	root, err = r.frame(1)
	return r.at, root, err
}

func (r *reference) next() (byte, error) {
	if r.at == len(r.buf) {
		return 0, errShort
	}
	r.at++
	return r.buf[r.at-1], nil
}

func (r *reference) expect(s string) error {
	for i := range len(s) {
		if c, err := r.next(); err != nil {
			return err
		} else if c != s[i] {
			return errBad
		}
	}
	return nil
}

// line takes a line of up to most bytes, and its end.
func (r *reference) line(most int) (string, error) {
	text := ""
	for {
		c, err := r.next()
		switch {
		case err != nil:
			return "", err
		case c == '\r':
			return text, r.expect("\n")
		case c == '\n' || len(text) == most:
			return "", errBad
		}
		text += string([]byte{c})
	}
}

func (r *reference) number() (int64, error) {
	text, err := r.line(20)
	if err != nil {
		return 0, err
	}
	n, ok := new(big.Int).SetString(text, 10)
	if !decimal.MatchString(text) || !ok || n.Cmp(least) < 0 || n.Cmp(greatest) > 0 {
		return 0, errBad
	}
	return n.Int64(), nil
}

// frame takes a whole frame whose aggregates would be at the given depth.
func (r *reference) frame(depth int) (node, error) {
	c, err := r.next()
	if err != nil {
		return node{}, err
	}
	n := node{Kind: Kind(c)}
	switch n.Kind {
	case SimpleString, Error:
		n.Bytes, err = r.line(r.lim.Line)
	case Double, BigNumber:
		n.Bytes, err = r.line(r.lim.Line)
		if err == nil && n.Kind == Double && !fraction.MatchString(n.Bytes) {
			err = errBad
		}
		if err == nil && n.Kind == BigNumber && !decimal.MatchString(n.Bytes) {
			err = errBad
		}
	case Integer:
		n.Int, err = r.number()
	case Null:
		n.Null = true
		err = r.expect("\r\n")
	case Boolean:
		var text string
		if text, err = r.line(1); err == nil && text != "t" && text != "f" {
			err = errBad
		}
		if text == "t" {
			n.Int = 1
		}
	case Bulk, BulkError, Verbatim:
		err = r.bulk(&n)
	case Array, Set, Push, Map, Attribute:
		return r.aggregate(n, depth)
	default:
		err = errBad
	}
	return n, err
}

func (r *reference) bulk(n *node) error {
	size, err := r.number()
	switch {
	case err != nil:
		return err
	case size == -1 && n.Kind == Bulk:
		n.Null = true
		return nil
	case size < 0 || size > int64(r.lim.Bulk) || (n.Kind == Verbatim && size < 4):
		return errBad
	case int64(len(r.buf)-r.at) < size:
		return errShort
	}
	n.Bytes = r.buf[r.at : r.at+int(size)]
	r.at += int(size)
	if err := r.expect("\r\n"); err != nil {
		return err
	}
	if n.Kind == Verbatim {
		if n.Bytes[3] != ':' {
			return errBad
		}
		n.Bytes = n.Bytes[4:]
	}
	return nil
}

func (r *reference) aggregate(n node, depth int) (node, error) {
	count, err := r.number()
	switch {
	case err != nil:
		return n, err
	case count == -1 && n.Kind == Array:
		n.Null = true
		return n, nil
	case count < 0 || count > 1<<40 || depth > r.lim.Depth:
		return n, errBad
	case n.Kind == Push && depth > 1:
		return n, errBad
	}
	cost := count
	switch n.Kind {
	case Map:
		count, cost = 2*count, 2*count
	case Attribute:
		count, cost = 2*count, 2*count+1
	}
	if cost > int64(r.lim.Elements-r.elements) {
		return n, errBad
	}
	r.elements += int(cost)
	n.Int = count
	for range count {
		e, err := r.frame(depth + 1)
		if err != nil {
			return n, err
		}
		n.Nodes = append(n.Nodes, e)
	}
	if n.Kind == Attribute {
		return r.frame(depth) // the value it is about takes its place
	}
	return n, nil
}

// agree checks one Decode of a fresh or used decoder against the reference and
// the limits, and returns the length of the frame, 0 if there is none.
func agree(t *testing.T, d *Decoder, buf []byte) int {
	t.Helper()
	var v Value
	n, err := d.Decode(buf, &v)
	want, root, refErr := referenceDecode(buf, full(d.Limits))
	switch {
	case errors.Is(refErr, errShort):
		require.ErrorIs(t, err, ErrIncomplete)
		require.Zero(t, n)
		return 0
	case errors.Is(refErr, errBad):
		checkMalformed(t, err, len(buf))
		require.Zero(t, n)
		_, again := d.Decode(buf, &v)
		require.Equal(t, err, again, "until Reset")
		return 0
	}
	require.NoError(t, err)
	require.Equal(t, want, n)
	require.Equal(t, root, tree(&v))
	return n
}

// checkMalformed checks that err is a ProtocolError fit for logging.
func checkMalformed(t *testing.T, err error, size int) {
	t.Helper()
	var malformed *ProtocolError
	require.ErrorAs(t, err, &malformed)
	require.GreaterOrEqual(t, malformed.Offset, 0)
	require.Less(t, malformed.Offset, size)
	require.Regexp(t, `^resp: malformed frame at byte [0-9]+: [a-zA-Z ]+$`, err.Error())
}

// full spells out the default limits.
func full(lim Limits) Limits {
	pick := func(n, standard int) int {
		if n <= 0 {
			return standard
		}
		return n
	}
	return Limits{
		Line:     pick(lim.Line, DefaultLine),
		Bulk:     pick(lim.Bulk, DefaultBulk),
		Elements: pick(lim.Elements, DefaultElements),
		Depth:    pick(lim.Depth, DefaultDepth),
	}
}
