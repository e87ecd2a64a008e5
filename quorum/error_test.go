package quorum_test

import (
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/redlock-go/redlock/quorum"
)

func TestRoundErrorIsItsReasonAndItsCauses(t *testing.T) {
	reason := errors.New("no quorum")
	var err error = &quorum.RoundError{
		Cause: reason, Nodes: 3, Granted: 1,
		Failed: []quorum.NodeError{{Node: 1, Addr: "a:1", Err: io.EOF}, {Node: 2, Addr: "b:2", Err: io.ErrClosedPipe}},
	}
	assert.ErrorIs(t, err, reason)
	assert.ErrorIs(t, err, io.EOF)
	assert.ErrorIs(t, err, io.ErrClosedPipe)
	assert.NotErrorIs(t, err, io.ErrNoProgress)
	var node quorum.NodeError
	assert.ErrorAs(t, err, &node)
	assert.Equal(t, 1, node.Node)
	assert.EqualError(t, err, "no quorum: of 3 nodes 1 granted, 0 denied, 2 failed; node 1 (a:1): EOF; node 2 (b:2): io: read/write on closed pipe")
}
