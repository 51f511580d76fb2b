// Command peer uses a key as Pulumi's cloud secrets manager does: with the keeper of gocloud.dev and Pulumi's crypter.
//
// Usage:
//
//	peer decrypt URL ENCRYPTEDKEY CIPHERTEXT   prints the secret
//	peer encrypt URL SECRET                    prints a new encrypted data key and the ciphertext, one per line
package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"os"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/config"
	"gocloud.dev/secrets"
	_ "gocloud.dev/secrets/awskms"
	_ "gocloud.dev/secrets/hashivault"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	keeper, err := secrets.OpenKeeper(ctx, args[1])
	if err != nil {
		return err
	}
	defer keeper.Close()
	if args[0] == "decrypt" {
		encrypted, err := base64.StdEncoding.DecodeString(args[2])
		if err != nil {
			return err
		}
		key, err := keeper.Decrypt(ctx, encrypted)
		if err != nil {
			return err
		}
		text, err := config.NewSymmetricCrypter(key).DecryptValue(ctx, args[3])
		if err != nil {
			return err
		}
		fmt.Print(text)
		return nil
	}
	key := make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		return err
	}
	encrypted, err := keeper.Encrypt(ctx, key)
	if err != nil {
		return err
	}
	ciphertext, err := config.NewSymmetricCrypter(key).EncryptValue(ctx, args[2])
	if err != nil {
		return err
	}
	fmt.Printf("%s\n%s\n", base64.StdEncoding.EncodeToString(encrypted), ciphertext)
	return nil
}
