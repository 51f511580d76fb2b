// Program that uses the bucket in which Pulumi stores states in PostgreSQL: get, put, copy, delete and list, given as
// arguments after the URL. Contents are read from standard input and printed to standard output.
package main

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"

	"github.com/pulumi/pulumi/pkg/v3/backend/diy/postgres"
	"gocloud.dev/blob"
)

func run(ctx context.Context, arguments []string) error {
	u, err := url.Parse(arguments[0])
	if err != nil {
		return err
	}
	path := strings.TrimLeft(u.Path, "/")
	opened, err := postgres.NewPostgresBucket(ctx, u)
	if err != nil {
		return err
	}
	bucket := opened.Bucket()
	if path != "" {
		bucket = blob.PrefixedBucket(bucket, strings.TrimSuffix(path, "/")+"/")
	}
	switch arguments[1] {
	case "get":
		content, err := bucket.ReadAll(ctx, arguments[2])
		if err != nil {
			return err
		}
		_, err = os.Stdout.Write(content)
		return err
	case "put":
		content, err := io.ReadAll(os.Stdin)
		if err != nil {
			return err
		}
		return bucket.WriteAll(ctx, arguments[2], content, nil)
	case "copy":
		return bucket.Copy(ctx, arguments[3], arguments[2], nil)
	case "delete":
		return bucket.Delete(ctx, arguments[2])
	case "list":
		objects := bucket.List(&blob.ListOptions{Prefix: arguments[2]})
		for {
			object, err := objects.Next(ctx)
			if err == io.EOF {
				return nil
			}
			if err != nil {
				return err
			}
			fmt.Println(object.Key)
		}
	}
	return fmt.Errorf("unknown command %q", arguments[1])
}

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
