// Command pulumi-resource-peergo is a provider on the generated server code of Pulumi's SDK for Go, which stores
// resources as files.
//
// The provider has a Handshake, accepts secrets in their wire format, and supports previews.
// tests/src/sdk_providers/provider_home.rs describes its files.
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"

	rpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
)

func main() {
	_, isRegistered := os.LookupEnv("SC_PLUGIN_HOST")
	if !isRegistered && len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "one argument is needed: the address of the engine")
		os.Exit(1)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	server := grpc.NewServer(grpc.MaxRecvMsgSize(400 << 20))
	rpc.RegisterResourceProviderServer(server, &things{home: os.Getenv("PEER_HOME")})
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	go func() { <-ctx.Done(); server.GracefulStop() }()
	port := listener.Addr().(*net.TCPAddr).Port
	if !isRegistered {
		fmt.Println(port)
	} else if err := register("peergo", "1.0.0", port); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if err := server.Serve(listener); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
