#!/bin/sh
# Pipeline of a repository: finds mistakes, shows what would change, changes it, and checks that nothing is left to do.
set -eu
sc validate
sc preview
sc provision --parallel "${PARALLEL:-16}"
sc preview --expect-no-changes
