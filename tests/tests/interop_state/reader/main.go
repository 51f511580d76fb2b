// Command reader decodes a checkpoint strictly with Pulumi's own types, decrypts its secrets, and encodes it again.
//
// Usage: reader CHECKPOINT, with the passphrase in PULUMI_CONFIG_PASSPHRASE. Prints one JSON object: "written" is the
// checkpoint in the format of Go's encoder, "secrets" are the plaintexts of all secrets, in the order of the file.
package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/config"
)

const (
	signatureKey    = "4dabf18193072939515e22adb298388d"
	secretSignature = "1b47061264138c4ac30d75fd1eb44270"
)

// checkpointFile is apitype.VersionedCheckpoint with a decoded checkpoint.
type checkpointFile struct {
	Version    int                  `json:"version"`
	Features   []string             `json:"features,omitempty"`
	Checkpoint apitype.CheckpointV3 `json:"checkpoint"`
}

type report struct {
	Written string   `json:"written"`
	Secrets []string `json:"secrets"`
}

func main() {
	if err := read(os.Args[1], os.Getenv("PULUMI_CONFIG_PASSPHRASE")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func read(path, passphrase string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var outer apitype.VersionedCheckpoint
	if err := strictly(text, &outer); err != nil {
		return fmt.Errorf("versioned checkpoint: %w", err)
	}
	file := checkpointFile{Version: outer.Version, Features: outer.Features}
	if err := strictly(outer.Checkpoint, &file.Checkpoint); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	deployment := file.Checkpoint.Latest
	if deployment == nil {
		return fmt.Errorf("the checkpoint has no deployment")
	}
	crypter, err := unlock(deployment.SecretsProviders, passphrase)
	if err != nil {
		return err
	}
	var found report
	open := func(ciphertext string) error {
		plaintext, err := crypter.DecryptValue(context.Background(), ciphertext)
		found.Secrets = append(found.Secrets, plaintext)
		return err
	}
	if err := eachSecret(json.NewDecoder(bytes.NewReader(text)), open); err != nil {
		return err
	}
	var written bytes.Buffer
	encoder := json.NewEncoder(&written)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(file); err != nil {
		return err
	}
	found.Written = strings.TrimSuffix(written.String(), "\n")
	return json.NewEncoder(os.Stdout).Encode(found)
}

func strictly(text []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	return decoder.Decode(into)
}

// unlock derives the key and checks it against the verifier in the salt.
func unlock(secrets *apitype.SecretsProvidersV1, passphrase string) (config.Crypter, error) {
	if secrets == nil || secrets.Type != "passphrase" {
		return nil, fmt.Errorf("the secrets provider is not a passphrase")
	}
	var state struct {
		Salt string `json:"salt"`
	}
	if err := strictly(secrets.State, &state); err != nil {
		return nil, err
	}
	parts := strings.SplitN(state.Salt, ":", 3)
	if len(parts) != 3 || parts[0] != "v1" {
		return nil, fmt.Errorf("the salt %q is malformed", state.Salt)
	}
	salt, err := base64.StdEncoding.DecodeString(parts[1])
	if err != nil {
		return nil, err
	}
	crypter := config.NewSymmetricCrypterFromPassphrase(passphrase, salt)
	verifier, err := crypter.DecryptValue(context.Background(), parts[2])
	if err != nil || verifier != "pulumi" {
		return nil, fmt.Errorf("incorrect passphrase (%v)", err)
	}
	return crypter, nil
}

// eachSecret calls a function for the ciphertext of each secret, in the order of the text. A ciphertext is the member
// "ciphertext" that directly follows the signature of a secret.
func eachSecret(tokens *json.Decoder, call func(string) error) error {
	var before [3]any
	for {
		token, err := tokens.Token()
		if err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if ciphertext, ok := token.(string); ok && before == [3]any{signatureKey, secretSignature, "ciphertext"} {
			if err := call(ciphertext); err != nil {
				return err
			}
		}
		before = [3]any{before[1], before[2], token}
	}
}
