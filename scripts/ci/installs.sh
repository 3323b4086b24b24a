#!/usr/bin/env bash
# Installs all packages from their tarballs into one project, imports them and checks their types. If FENCED_SUITE is "full",
# installs each alone, with npm and with pnpm, and runs the READMEs' examples.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

arguments=(--together)
if [[ ${FENCED_SUITE-} == full ]]; then arguments=(); fi
npm run check:installs -- "${arguments[@]}"
