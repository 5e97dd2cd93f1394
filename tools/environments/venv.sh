#!/bin/sh
# Makes .venv from requirements.lock, every file checked against its hash; with uv, which pip fetches where it is
# missing, or with pip alone where there is no uv for the machine.
set -eu

suits() {
    "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null
}

for python in "${PYTHON:-python3}" python3.13 python3.12 python3.11 python; do
    if suits "$python"; then
        found=$python
        break
    fi
done
if [ -z "${found:-}" ]; then
    echo "The course needs Python 3.11, 3.12 or 3.13, and found none of them." >&2
    echo "Install one, or name it: make test PYTHON=/path/to/python" >&2
    exit 1
fi

rm -rf .venv
"$found" -m venv .venv || {
    echo "Python's venv module is missing; on Debian and Ubuntu: apt-get install python3-venv" >&2
    exit 1
}
if command -v uv >/dev/null 2>&1; then
    install="uv pip install --quiet --compile-bytecode --python .venv/bin/python"
elif .venv/bin/python -m pip install --quiet --require-hashes -r tools/environments/uv.txt; then
    install=".venv/bin/uv pip install --quiet --compile-bytecode --python .venv/bin/python"
else
    install=".venv/bin/python -m pip install --quiet"
fi
$install --require-hashes -r requirements.lock
$install --no-deps --no-build-isolation -e .
