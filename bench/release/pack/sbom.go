package pack

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"
)

// component is a part of a bill of materials.
type component struct {
	Type    string              `json:"type"`
	Ref     string              `json:"bom-ref"`
	Name    string              `json:"name"`
	Version string              `json:"version,omitempty"`
	PURL    string              `json:"purl,omitempty"`
	Hashes  []map[string]string `json:"hashes,omitempty"`
}

// SBOM is the bill of materials of programs, in the form CycloneDX 1.5: the modules that the programs themselves name, and the
// programs with their digests.
func SBOM(name, version string, programs map[string]io.ReaderAt, digests map[string][sha256.Size]byte, at time.Time) ([]byte, error) {
	modules := map[string]component{}
	var components []component
	for _, program := range slices.Sorted(maps.Keys(programs)) {
		info, err := buildinfo.Read(programs[program])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", program, err)
		}
		add := func(path, version string) {
			purl := "pkg:golang/" + path + "@" + version
			modules[purl] = component{Type: "library", Ref: purl, Name: path, Version: version, PURL: purl}
		}
		add("stdlib", info.GoVersion)
		for _, m := range info.Deps {
			add(m.Path, m.Version)
		}
		components = append(components, component{Type: "file", Ref: program, Name: program, Version: version,
			Hashes: []map[string]string{{"alg": "SHA-256", "content": fmt.Sprintf("%x", digests[program])}}})
	}
	for _, purl := range slices.Sorted(maps.Keys(modules)) {
		components = append(components, modules[purl])
	}
	return json.MarshalIndent(map[string]any{
		"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
		"metadata": map[string]any{
			"timestamp": at.UTC().Format(time.RFC3339),
			"component": component{Type: "application", Ref: name + "@" + version, Name: name, Version: version},
		},
		"components": components,
	}, "", "  ")
}
