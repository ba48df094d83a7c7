#!/bin/sh
# Make a virtual environment and install the project into it: venv.sh FOLDER PYTHON REQUIREMENT
# PYTHON may be empty: then the first interpreter found that is new enough is taken.
set -eu
folder=$1 python=$2 requirement=$3

fail() {
    printf '%s\n' "$@" >&2
    exit 1
}

new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

if [ -z "$python" ]; then
    for candidate in python3 python3.14 python3.13 python3.12 python3.11 python; do
        if command -v "$candidate" >/dev/null 2>&1 && new_enough "$candidate"; then
            python=$candidate
            break
        fi
    done
    [ -n "$python" ] || fail \
        "Python 3.11 or newer is needed; none of python3, python3.11 … python3.14, python is." \
        "Install one, or name it: make PYTHON=/path/to/python3.11"
elif ! new_enough "$python"; then
    fail "PYTHON=$python is not Python 3.11 or newer (or cannot be run)."
fi

# An interpreter that was upgraded or removed leaves an environment that no longer starts.
if [ -e "$folder" ] && ! new_enough "$folder/bin/python"; then
    echo "The environment in $folder does not work any more; making it anew." >&2
    rm -rf "$folder"
fi

pip="$folder/bin/python -m pip"
if [ ! -e "$folder/bin/python" ]; then
    echo "Making a virtual environment in $folder with $("$python" --version) …" >&2
    if "$python" -c 'import ensurepip' 2>/dev/null; then
        "$python" -m venv "$folder" || fail "Could not make a virtual environment in $folder."
    else
        # Debian splits ensurepip off; the interpreter's own pip can fill the environment.
        "$python" -m venv --without-pip "$folder" && "$python" -m pip --version >/dev/null 2>&1 ||
            fail "$python has neither ensurepip nor pip." \
                "On Debian or Ubuntu: apt-get install python3-venv python3-pip"
    fi
fi
if ! $pip --version >/dev/null 2>&1; then
    pip="$python -m pip --python $folder/bin/python"
fi

echo "Installing $requirement into $folder …" >&2
$pip install --quiet --no-input --editable "$requirement" || fail \
    "The installation failed; pip's own message is above." \
    "If it could not reach a package index: behind a proxy, see pip's documentation on index-url."
