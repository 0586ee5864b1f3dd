#!/bin/sh
# One worker: makes a clone where there is none, and works on the graph of tasks that RALPH_STORE names.
#   worker.sh REMOTE FOLDER [OPTION OF 'ralph run']...
# It may be killed at any time and started again. Each worker needs a folder of its own.
set -eu
remote=$1 folder=$2
shift 2
if [ -e "$folder/.git" ]; then
  git -C "$folder" fetch --quiet || exit 5
else
  # A clone that was cut off is made again.
  rm -rf "$folder.new"
  # A remote that is away is no reason to stop: 5 is started again.
  git clone --quiet "$remote" "$folder.new" || exit 5
  mv "$folder.new" "$folder"
fi
cd "$folder"
exec ralph run --all "$@"
