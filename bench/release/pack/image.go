package pack

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"
)

// Image is what a container runs.
type Image struct {
	User             string
	Entrypoint, Args []string
	Ports            []string
	Labels           map[string]string
	At               time.Time
}

// A descriptor names a blob of an image, image-spec/descriptor.md of OCI.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Platform    *platform         `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

const mediaType = "application/vnd.oci.image."

// OCI is an archive of an image's layout (image-spec/image-layout.md of OCI) with one image for each architecture, under a name.
func OCI(i *Image, name string, layers map[string][]Entry, arches []string) ([]byte, error) {
	files := []Entry{{Path: "oci-layout", Mode: 0o644, Data: []byte(`{"imageLayoutVersion":"1.0.0"}`)}}
	blob := func(kind string, data []byte) descriptor {
		digest := fmt.Sprintf("%x", sha256.Sum256(data))
		files = append(files, Entry{Path: "blobs/sha256/" + digest, Mode: 0o644, Data: data})
		return descriptor{MediaType: mediaType + kind, Digest: "sha256:" + digest, Size: len(data)}
	}
	encoded := func(v any) []byte { // of types that can be encoded
		data, _ := json.Marshal(v)
		return data
	}
	ports := map[string]struct{}{}
	for _, port := range i.Ports {
		ports[port] = struct{}{}
	}
	var images []descriptor
	for _, arch := range arches {
		var layer bytes.Buffer
		if err := writeTar(&layer, "", Folders(layers[arch]), i.At); err != nil {
			return nil, err
		}
		config := blob("config.v1+json", encoded(map[string]any{
			"architecture": arch, "os": "linux", "created": i.At.UTC().Format(time.RFC3339),
			"config": map[string]any{"User": i.User, "Entrypoint": i.Entrypoint, "Cmd": i.Args, "ExposedPorts": ports, "Labels": i.Labels, "Env": []string{"PATH=/usr/bin"}},
			"rootfs": map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer.Bytes()))}},
		}))
		manifest := blob("manifest.v1+json", encoded(map[string]any{
			"schemaVersion": 2, "mediaType": mediaType + "manifest.v1+json", "config": config,
			"layers": []descriptor{blob("layer.v1.tar+gzip", compress(layer.Bytes()))},
		}))
		manifest.Platform = &platform{arch, "linux"}
		images = append(images, manifest)
	}
	index := func(of []descriptor) []byte {
		return encoded(map[string]any{"schemaVersion": 2, "mediaType": mediaType + "index.v1+json", "manifests": of})
	}
	all := blob("index.v1+json", index(images))
	all.Annotations = map[string]string{"org.opencontainers.image.ref.name": name}
	files = append(files, Entry{Path: "index.json", Mode: 0o644, Data: index([]descriptor{all})})
	var b bytes.Buffer
	err := writeTar(&b, "", Folders(files), i.At)
	return b.Bytes(), err
}
