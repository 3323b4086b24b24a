#!/usr/bin/env bash
# Installs each package alone with npm, imports it and checks its types; where FENCED_SUITE is "full", with pnpm too, and runs what
# the READMEs show.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

arguments=(--with=npm --no-readme)
if [[ ${FENCED_SUITE-} == full ]]; then arguments=(); fi
npm run check:installs -- "${arguments[@]}"
