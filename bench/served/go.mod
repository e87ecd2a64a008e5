module github.com/redlock-go/redlock/bench/served

go 1.26.0

replace github.com/redlock-go/redlock => ../..

require (
	github.com/anishathalye/porcupine v1.3.1
	github.com/redlock-go/redlock v0.0.0
	github.com/stretchr/testify v1.12.1
)

require (
	github.com/tidwall/btree v1.1.0 // indirect
	github.com/tidwall/match v1.1.1 // indirect
	github.com/tidwall/redcon v1.6.2 // indirect
	github.com/valyala/bytebufferpool v1.0.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
)
