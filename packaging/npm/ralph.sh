#!/bin/sh
# Becomes the ralph of the package for this machine. A launcher in JavaScript would stay between the terminal and ralph: signals
# would reach both, or one of them. This one is replaced by the program, which has its process id, its signals and its exit code.
scope=@SCOPE@
fail() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

[ "$(uname -s)" = Linux ] || fail "there is no ralph for $(uname -s) on npm: on Windows, install it inside of WSL 2"
case $(uname -m) in
  x86_64 | amd64) cpu=x64 loader=/lib64/ld-linux-x86-64.so.2 ;;
  aarch64 | arm64) cpu=arm64 loader=/lib/ld-linux-aarch64.so.1 ;;
  *) fail "there is no ralph for $(uname -m) on npm: build it from source (cargo install --locked)" ;;
esac

# npm links to this file, pnpm calls it.
self=$0
while [ -L "$self" ]; do
  to=$(readlink "$self")
  case $to in
    /*) self=$to ;;
    *) self=${self%/*}/$to ;;
  esac
done
here=$(CDPATH='' cd -P "${self%/*}" && pwd) || fail "cannot find the folder of $self"

# Prints the program of a package, which lies in a node_modules beside or above this one.
program() {
  folder=$here
  while
    found=$folder/node_modules/$scope/ralph-linux-$cpu-$1/bin/ralph
    [ ! -f "$found" ]
  do
    [ -n "$folder" ] || return 1
    folder=${folder%/*}
  done
  printf '%s\n' "$found"
}

glibc=$(program glibc) && [ -e "$loader" ] && exec "$glibc" "$@"
# A program of the musl package is static: it starts beside any C library.
musl=$(program musl) && exec "$musl" "$@"
[ -z "$glibc" ] ||
  fail "$glibc needs glibc, and this system has none ($loader is missing): install $scope/ralph again on this system"
fail "the package $scope/ralph-linux-$cpu-glibc, which has the program, is missing: npm leaves it out where optional" \
  "dependencies are off (--omit=optional), or if the lock file is of another system; npm install it by its name"
