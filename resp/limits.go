package resp

// The defaults of [Limits]. They have room for INFO and for long error texts.
const (
	DefaultLine     = 1 << 10  // bytes
	DefaultBulk     = 64 << 10 // bytes
	DefaultElements = 4096
	DefaultDepth    = 8
)

// The upper bounds of the fields of [Limits]: arithmetic does not overflow where int has 32 bits. MaxBulk is the
// server's own proto-max-bulk-len and MaxLine its limit on inline commands.
const (
	MaxLine     = 64 << 10  // bytes
	MaxBulk     = 512 << 20 // bytes
	MaxElements = 1 << 20
	MaxDepth    = 32
)

// Limits bounds what one frame may hold. A frame beyond any of them is malformed, as found once its header is
// readable: no limit is ever used to size memory. The zero value means the defaults, field by field, and so does a
// negative field; a field above its Max constant means that constant.
type Limits struct {
	// Line is the longest text of a simple string, error, double or big number, in bytes, without the first byte and
	// the CR LF. The lines of integers and lengths have 20 bytes, which hold all of them.
	Line int
	// Bulk is the longest payload of a bulk, bulk error or verbatim, in bytes.
	Bulk int
	// Elements is how many elements a frame may announce in total, over all its nesting. A pair counts for two.
	// Attributes count although they are skipped: one for each of them and two for each of their pairs.
	Elements int
	// Depth is how many aggregates may be open at once: an array of integers needs 1. Empty ones and attributes count.
	Depth int
}

// hardLimits is for bytes checked by a Decoder already.
var hardLimits = Limits{Line: MaxLine, Bulk: MaxBulk, Elements: MaxElements, Depth: MaxDepth}

// withDefaults returns the limits in effect for l.
func (l Limits) withDefaults() Limits {
	return Limits{
		Line:     within(l.Line, DefaultLine, MaxLine),
		Bulk:     within(l.Bulk, DefaultBulk, MaxBulk),
		Elements: within(l.Elements, DefaultElements, MaxElements),
		Depth:    within(l.Depth, DefaultDepth, MaxDepth),
	}
}

func within(n, standard, most int) int {
	if n <= 0 {
		return standard
	}
	return min(n, most)
}
