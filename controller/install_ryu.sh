#!/usr/bin/env bash
# Installs Ryu 4.34, the controller framework's unmaintained ancestor, into an environment of its own (.venv-ryu).
#
#   controller/install_ryu.sh            beside .venv, with .venv's Python
#
# Idempotent. Ryu needs an old setuptools to be built (ryu issue 201), which must not reach .venv. What our code imports
# (pydantic, PyYAML, ...) is taken from .venv through a .pth file; Ryu's own dependencies come first.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

main=.venv/bin/python
venv=.venv-ryu
[[ -x $main ]] || { echo "install_ryu.sh: $main is missing; run setup.sh first" >&2; exit 3; }

if ! "$venv/bin/python" -W ignore -m controller.framework ryu >/dev/null 2>&1; then
    "$main" -m venv --clear "$venv"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check 'setuptools<68' wheel pbr
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-build-isolation 'ryu==4.34'
    site=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    "$main" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' >"$site/mrc-main.pth"
    echo '*' >"$venv/.gitignore"
fi
version=$("$venv/bin/python" -W ignore -m controller.framework ryu)
echo "Ryu $version in $venv"
