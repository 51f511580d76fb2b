# Writes the Caddyfile that Caddy runs: the lines of the cluster, the snippets, the site for requests that no service
# wants, and the entries of all services. Of two entries for one address, that of the newer service counts.
set -euo pipefail

snippets=/etc/caddy/Caddyfile
result=/tmp/Caddyfile
key='"simple-container.com/caddyfile-entry"'
with_entry='{{range .items}}{{with .metadata}}{{$service := .}}{{with .annotations}}{{if index . '$key'}}'
with_entry+='{{$service.creationTimestamp}} {{$service.namespace}} {{$service.name}}{{"\n"}}{{end}}{{end}}{{end}}{{end}}'
entry='{{with .metadata.annotations}}{{with index . '$key'}}{{.}}{{end}}{{end}}'

# The first line with text is the address of an entry.
address() {
  local line
  while IFS= read -r line; do
    read -r line <<<"${line%\{*}" || true
    if [ -n "$line" ]; then
      printf '%s' "$line"
      return
    fi
  done <<<"$1"
}

services=$(kubectl get services --all-namespaces --output "go-template=$with_entry")
services=$(sort -r <<<"$services")
known=$'\n'$(address "$DEFAULT_ENTRY_START")$'\n'
entries=''
while read -r created namespace name; do
  [ -n "${name:-}" ] || continue
  text=$(kubectl get service "$name" --namespace "$namespace" --ignore-not-found --output "go-template=$entry")
  address=$(address "$text")
  if [ -z "$address" ]; then
    echo "$namespace/$name: no entry any more"
  elif [[ $known == *$'\n'"$address"$'\n'* ]]; then
    echo "$namespace/$name: left out, another site has the address $address"
  else
    echo "$namespace/$name: $address"
    known+=$address$'\n'
    entries+=$text$'\n'
  fi
done <<<"$services"

{
  printf '%s\n' "${CADDYFILE_PREFIX:-}"
  cat "$snippets"
  printf '%s\n' "$DEFAULT_ENTRY_START"
  # With prefixes, an entry is a part of the site; without them, a site of its own.
  if [ "${USE_PREFIXES:-false}" = true ]; then
    printf '%s\n%s\n}\n' "$entries" "$DEFAULT_ENTRY"
  else
    printf '%s\n}\n%s\n' "$DEFAULT_ENTRY" "$entries"
  fi
} >"$result.new"
mv "$result.new" "$result"
