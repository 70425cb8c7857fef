# Source this in a build script: the libraries of a package, from wheels.

# pip gives files the caller's modes; in an .rpm they stay.
umask 022

# Unpack the wheels in folder $3, for Python $1 and architecture $2, into folder $4: those of site.txt, and of file $5 if
# given. Each is the exact file that was reviewed; `pip` runs nothing that is in it.
libraries() {
    python3 -m pip install -q --root-user-action=ignore --no-index --no-compile --no-deps --require-hashes \
        --only-binary=:all: --implementation cp --python-version "$1" $(python3 packaging/wheels.py platforms "$2") \
        --find-links "$3" --target "$4" -r packaging/site.txt ${5:+-r "$5"}
}
native=$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
native_arch=$(dpkg --print-architecture)
