package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"gocloud.dev/blob"
	_ "gocloud.dev/blob/azureblob"
	_ "gocloud.dev/blob/s3blob"
)

// lock has the members of Pulumi's lock file.
type lock struct {
	Pid       int       `json:"pid"`
	Username  string    `json:"username"`
	Hostname  string    `json:"hostname"`
	Timestamp time.Time `json:"timestamp"`
}

type bucketReport struct {
	// Sizes of all objects by key, as listed.
	Objects map[string]int64 `json:"objects"`
	// Secrets of each checkpoint, by key.
	Secrets map[string][]string `json:"secrets"`
	Locks   []lock              `json:"locks"`
	Updates []string            `json:"updates"`
}

// readBucket reads all objects of a bucket, in the formats that Pulumi's command line gives them.
func readBucket(ctx context.Context, location string) (*bucketReport, error) {
	bucket, err := openBucket(ctx, location)
	if err != nil {
		return nil, err
	}
	defer bucket.Close()
	found := &bucketReport{Objects: map[string]int64{}, Secrets: map[string][]string{}}
	objects := bucket.List(&blob.ListOptions{Prefix: ".pulumi/"})
	for {
		object, err := objects.Next(ctx)
		if err == io.EOF {
			return found, nil
		}
		if err != nil {
			return nil, err
		}
		content, err := bucket.ReadAll(ctx, object.Key)
		if err != nil {
			return nil, err
		}
		if int64(len(content)) != object.Size {
			return nil, fmt.Errorf("%s has %d bytes instead of %d", object.Key, len(content), object.Size)
		}
		found.Objects[object.Key] = object.Size
		if err := found.add(object.Key, content); err != nil {
			return nil, fmt.Errorf("%s: %w", object.Key, err)
		}
	}
}

// openBucket opens a bucket as Pulumi's command line does: the path of the URL is a prefix.
func openBucket(ctx context.Context, location string) (*blob.Bucket, error) {
	u, err := url.Parse(location)
	if err != nil {
		return nil, err
	}
	bucket, err := blob.OpenBucket(ctx, location)
	if err != nil {
		return nil, err
	}
	if prefix := strings.Trim(u.Path, "/"); prefix != "" {
		bucket = blob.PrefixedBucket(bucket, prefix+"/")
	}
	return bucket, nil
}

func (found *bucketReport) add(key string, content []byte) error {
	content, err := decompress(content)
	if err != nil {
		return err
	}
	name := strings.TrimSuffix(strings.TrimSuffix(key, ".bak"), ".gz")
	switch {
	case key == ".pulumi/meta.yaml":
		if string(content) != "version: 1\n" {
			return fmt.Errorf("unexpected content %q", content)
		}
	case strings.HasPrefix(key, ".pulumi/locks/"):
		var held lock
		if err := json.Unmarshal(content, &held); err != nil {
			return err
		}
		found.Locks = append(found.Locks, held)
	case strings.HasSuffix(name, ".history.json"):
		var update struct {
			Kind   apitype.UpdateKind `json:"kind"`
			Result string             `json:"result"`
		}
		if err := json.Unmarshal(content, &update); err != nil {
			return err
		}
		found.Updates = append(found.Updates, fmt.Sprintf("%s %s", update.Kind, update.Result))
	case strings.HasSuffix(name, ".json"):
		checkpoint, err := readCheckpoint(content, os.Getenv("PULUMI_CONFIG_PASSPHRASE"))
		if err != nil {
			return err
		}
		found.Secrets[key] = checkpoint.Secrets
	}
	return nil
}

func decompress(content []byte) ([]byte, error) {
	if !bytes.HasPrefix(content, []byte{0x1f, 0x8b, 0x08}) {
		return content, nil
	}
	reader, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(reader)
}
