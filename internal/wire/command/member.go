package command

import (
	"github.com/redlock-go/redlock/internal/rules/fencing"
	"github.com/redlock-go/redlock/resp"
)

// AppendMember writes a call of the member script of package fencing: a verb and its arguments. me
// is the fleet and the node's present life.
func AppendMember(dst []byte, set string, me []byte, verb string, args ...string) []byte {
	dst = resp.AppendArray(dst, 6+len(args))
	dst = append(dst, callBySHA+fencing.MemberSHA1+"\r\n$1\r\n1\r\n"...)
	dst = resp.AppendBulkString(dst, set)
	dst = resp.AppendBulkString(dst, verb)
	dst = resp.AppendBulk(dst, me)
	for _, a := range args {
		dst = resp.AppendBulkString(dst, a)
	}
	return dst
}
