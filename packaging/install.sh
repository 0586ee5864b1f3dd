#!/bin/sh
# Installs ralph for one user: sh install.sh [--version VERSION] [--to FOLDER] [--from FOLDER-OR-URL]
#
#   --version  which release; by default the newest one
#   --to       where the program goes: by default ~/.local/bin
#   --from     where the release's files are, SHA256SUMS among them: a folder, or an address that curl or wget can fetch from
#
# It checks the checksum of the archive before it moves anything, and changes no file of your shell.
set -eu
repository=@REPOSITORY@

fail() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

usage='sh install.sh [--version VERSION] [--to FOLDER] [--from FOLDER-OR-URL]'
version='' to='' from=''
while [ $# -gt 0 ]; do
  case $1 in
    --version | --to | --from) [ -n "${2-}" ] || fail "$1 needs a value" ;;
    -h | --help) printf 'Installs ralph for one user, by default in ~/.local/bin: %s\n' "$usage" && exit ;;
    *) fail "there is no option $1: $usage" ;;
  esac
  case $1 in
    --version) version=${2#v} ;;
    --to) to=$2 ;;
    --from) from=${2%/} ;;
  esac
  shift 2
done
to=${to:-${HOME:+$HOME/.local/bin}}
[ -n "$to" ] || fail "HOME is not set: choose a folder with --to"
if [ -z "$from" ]; then
  if [ -n "$version" ]; then from=$repository/releases/download/v$version; else from=$repository/releases/latest/download; fi
fi

[ "$(uname -s)" = Linux ] || fail "there is no program for $(uname -s): ralph has only run on Linux"
case $(uname -m) in
  x86_64 | amd64) cpu=x86_64 loader=/lib64/ld-linux-x86-64.so.2 ;;
  aarch64 | arm64) cpu=aarch64 loader=/lib/ld-linux-aarch64.so.1 ;;
  *) fail "there is no program for $(uname -m): build it from source (cargo install --locked)" ;;
esac
# A system without glibc gets the program that needs no C library.
if [ -e "$loader" ]; then libc=gnu; else libc=musl; fi
target=$cpu-unknown-linux-$libc

new=$to/.ralph.new
work=$(mktemp -d)
trap 'rm -rf "$work"; rm -f "$new"' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

fetch() {
  case $from in
    *://*)
      if command -v curl >/dev/null 2>&1; then
        curl --fail --silent --show-error --location --output "$work/$1" "$from/$1"
      elif command -v wget >/dev/null 2>&1; then
        wget -q -O "$work/$1" "$from/$1"
      else
        fail "neither curl nor wget is there to fetch $from/$1: install one of them"
      fi
      ;;
    *) cp "$from/$1" "$work/$1" ;;
  esac || fail "cannot fetch $from/$1"
}

fetch SHA256SUMS
# The list names the version.
archives=$(sed -n "s/^[0-9a-f]*  \(ralph-.*-$target\.tar\.gz\)\$/\1/p" "$work/SHA256SUMS")
if [ -n "$version" ]; then archives=$(printf '%s\n' "$archives" | grep -xF "ralph-$version-$target.tar.gz" || true); fi
case $archives in
  '') fail "$from has no archive of ralph ${version:+$version }for $target" ;;
  *'
'*) fail "$from has several versions: choose one with --version" ;;
esac
fetch "$archives"
command -v sha256sum >/dev/null 2>&1 || fail "sha256sum is missing, without which the archive cannot be checked: install coreutils"
(cd "$work" && grep -F "  $archives" SHA256SUMS | sha256sum -c - >/dev/null 2>&1) ||
  fail "the checksum of $from/$archives is not the one in SHA256SUMS: nothing was installed"

folder=${archives%.tar.gz}
tar -x -z -f "$work/$archives" -C "$work"
mkdir -p "$to" || fail "cannot make $to: choose another folder with --to"
[ ! -d "$to/ralph" ] || fail "$to/ralph is a folder: move it away, or choose another folder with --to"
if ! { cp "$work/$folder/ralph" "$new" && chmod 755 "$new"; }; then
  fail "cannot write to $to: make room there, or choose another folder with --to"
fi
said=$("$new" --version) || fail "the program does not start in $to, so it was not installed: see above why;" \
  "if programs cannot run in that folder (mounted noexec), choose another one with --to"
# A running program cannot be written to, only replaced.
mv -f "$new" "$to/ralph" || fail "cannot write to $to: choose another folder with --to"
printf '%s is %s\n' "$to/ralph" "$said"
case :$PATH: in
  *":$to:"*) ;;
  *) printf '%s\n' "$to is not on PATH: add it in the startup file of your shell" ;;
esac
