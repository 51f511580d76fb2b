#!/bin/sh
# Builds HashiCorp Vault from the Go proxy into target/interop/vault/vault.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
target=$here/../../../../target/interop/vault
mkdir -p "$target/sources"
cd "$target/sources"
cp "$here/go.mod" "$here/go.sum" .
module=$(go mod download -json github.com/hashicorp/vault@v1.21.4 | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
rm -rf vault
cp -R "$module" vault
chmod -R u+w vault
rm -rf vault/ui
# Three calls of the module sdk, whose published versions have other signatures.
sed -i '119s/iStore.activateDeduplication/func(ctx context.Context, req *logical.Request, _ string) error { return iStore.activateDeduplication(ctx, req) }/' \
    vault/vault/identity_store.go
sed -i '167s/ActivationFunc(ctx, nil)/ActivationFunc(ctx, nil, "")/' vault/vault/logical_system_activation_flags.go
sed -i '64s/restoredKeyName, err := b.lm/restoredKeyName, err := keyName, b.lm/' vault/builtin/logical/transit/path_restore.go
go mod edit -replace github.com/hashicorp/vault=./vault
go build -mod=mod -p 1 -trimpath -tags minimal -ldflags '-s -w' -o ../vault github.com/hashicorp/vault
