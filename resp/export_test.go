package resp

// The reasons, for the tests of what is malformed.
type Reason = reason

const (
	UnknownKind     = unknownKind
	StreamedType    = streamedType
	BareLineBreak   = bareLineBreak
	LineTooLong     = lineTooLong
	BadNumber       = badNumber
	NumberOverflow  = numberOverflow
	NegativeLength  = negativeLength
	BulkTooLong     = bulkTooLong
	BadTerminator   = badTerminator
	TooManyElements = tooManyElements
	TooDeep         = tooDeep
	BadNull         = badNull
	BadBoolean      = badBoolean
	BadDouble       = badDouble
	BadBigNumber    = badBigNumber
	BadVerbatim     = badVerbatim
	NestedPush      = nestedPush
)
